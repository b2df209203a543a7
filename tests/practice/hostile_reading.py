"""Hostile submissions that want to know something: files, environment, memory, the answers.

Every one defines `f(x)`, whose right answer is a secret rule. They know `SECRET_FILE`, `ROOT` (the
repository), `PID` (the judge), `PORT`, `UDP_PORT` and `UNIX` (listening sockets), as if they had
been told, and answer or print what they got.
"""

READING = {
    "read_password_file": """
def f(x):
    return open("/etc/passwd").read()
""",
    "read_secret_file": """
def f(x):
    return open(SECRET_FILE).read()
""",
    "read_by_other_paths": """
import os
TRICKS = [
    "/proc/self/root" + SECRET_FILE, "/proc/1/root" + SECRET_FILE, "/../../.." + SECRET_FILE,
    "." + SECRET_FILE, "/usr/lib/.." + "/.." + SECRET_FILE, "//" + SECRET_FILE,
    f"/proc/{PID}/root" + SECRET_FILE, f"/proc/{PID}/cwd/../../pyproject.toml",
    "/dev/fd/../../" + SECRET_FILE,
    os.path.relpath(SECRET_FILE, "/usr/lib"), os.path.join(os.getcwd(), SECRET_FILE[1:]),
]
def f(x):
    for path in TRICKS:
        for opener in (open, lambda p: os.fdopen(os.open(p, os.O_RDONLY))):
            try:
                print(opener(path).read())
            except OSError as error:
                pass
    return "tried"
""",
    "read_through_a_link": """
import os
def f(x):
    for make in (os.symlink, os.link):
        for place in ("/tmp/link", "/dev/shm/link", "link", "/usr/lib/link"):
            try:
                make(SECRET_FILE, place)
                print(open(place).read())
            except OSError:
                pass
    return "tried"
""",
    "read_the_solutions": """
import glob, os
def f(x):
    found = []
    for place in ("practice/problems", "practice/judgelib", "minisgl", "steps", "docs"):
        for folder, _, names in os.walk(os.path.join(ROOT, place)):
            for name in names:
                try:
                    found.append(open(os.path.join(folder, name)).read(100))
                except (OSError, ValueError):
                    pass
    for path in glob.glob(ROOT + "/practice/problems/*/*.py"):
        found.append(open(path).read())
    return "GOT THE SOLUTIONS" if found else "nothing"
""",
    "import_the_reference": """
import importlib, sys
sys.path[:0] = [ROOT, ROOT + "/practice", ROOT + "/practice/problems", "/judge"]
sys.path_importer_cache.clear()
def f(x):
    for name in ("minisgl", "minisgl.core", "solution", "oracle", "tools.steps", "tests.conftest",
                 "practice.judgelib.core", "practice.judgelib.compare"):
        try:
            importlib.import_module(name)
        except ImportError:
            continue
        return "GOT THE SOLUTIONS"
    return "nothing"
""",
    "read_the_judges_environment": """
import os
def f(x):
    print(dict(os.environ))
    for pid in (PID, os.getppid(), "self", 1):
        try:
            print(open(f"/proc/{pid}/environ").read())
        except OSError:
            pass
    return "tried"
""",
    "read_memory_of_others": """
import os, re
def f(x):
    for pid in (PID, os.getppid()):
        try:
            with open(f"/proc/{pid}/mem", "rb") as memory:
                for line in open(f"/proc/{pid}/maps"):
                    low, high = (int(part, 16) for part in line.split()[0].split("-"))
                    if " rw" in line and high - low < 1 << 26:
                        memory.seek(low)
                        print(re.findall(rb"token-[0-9a-f]+", memory.read(high - low)))
        except OSError:
            pass
    return "tried"
""",
    "process_vm_readv": """
import ctypes
class Vector(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
def f(x):
    buffer = ctypes.create_string_buffer(64)
    ours = Vector(ctypes.addressof(buffer), 64)
    theirs = Vector(id(None), 64)
    got = ctypes.CDLL(None).process_vm_readv(PID, ctypes.byref(ours), 1, ctypes.byref(theirs), 1, 0)
    return "GOT MEMORY" if got > 0 else "nothing"
""",
    "ptrace_the_parent": """
import ctypes, os
def f(x):
    return "GOT MEMORY" if ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0) == 0 else "nothing"
""",
    "walk_frames_and_garbage": """
import gc, sys
def f(x):
    found, frame = [], sys._getframe()
    while frame:
        found.append({**frame.f_locals, **frame.f_globals})
        frame = frame.f_back
    text = repr(gc.get_objects())[:200_000] + repr(found)[:200_000]
    for item in gc.get_objects():
        if isinstance(item, (dict, list)) and ("expected" in item or "secret" in item):
            print("expected:", item)
    for module in list(sys.modules.values()):
        for name in ("expected", "EXPECTED", "ORACLE", "cases", "CASES"):
            if hasattr(module, name):
                print(module, name)
    at = text.find("token-")
    return text[at:at + 50] if at >= 0 else "nothing"
""",
    "trace_the_box": """
import sys
seen = []
def spy(frame, event, arg):
    seen.append((frame.f_code.co_name, sorted(frame.f_locals)))
    return spy
sys.settrace(spy)
sys.setprofile(lambda frame, event, arg: seen.append(repr(arg)[:200]))
frame = sys._getframe()
while frame:
    frame.f_trace = spy
    frame = frame.f_back
def f(x):
    print(seen[:200])
    return [row for row in map(str, seen) if "expected" in row]
""",
    "keep_the_earlier_cases": """
answers = []
def f(x):
    answers.append(x)
    return answers[0]
""",
    "look_into_open_files": """
import os
def f(x):
    for number in range(64):
        if number == 3:
            continue
        try:
            os.set_blocking(number, False)
            print(number, os.fstat(number), os.read(number, 100_000))
        except OSError:
            pass
    return "tried"
""",
    "steal_a_descriptor_of_the_judge": """
import ctypes
def f(x):
    libc = ctypes.CDLL(None)
    handle = libc.syscall(434, PID, 0)
    return "GOT A FILE" if libc.syscall(438, handle, 0, 0) >= 0 else "nothing"
""",
    "connect_tcp": """
import socket
def f(x):
    socket.create_connection(("127.0.0.1", PORT), 1).sendall(b"hello")
    return "CONNECTED"
""",
    "send_udp": """
import socket
def f(x):
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"hello", ("127.0.0.1", UDP_PORT))
    return "CONNECTED"
""",
    "connect_unix": """
import socket
def f(x):
    for name in (UNIX, chr(0) + UNIX):
        socket.socket(socket.AF_UNIX).connect(name)
    return "CONNECTED"
""",
    "send_through_a_pair": """
import os, socket
def f(x):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    ours.sendto(b"hello", UNIX + ".datagrams")
    return "CONNECTED"
""",
    "resolve_a_name": """
import socket
def f(x):
    return repr(socket.getaddrinfo("localhost", 80))
""",
    "download": """
import urllib.request
def f(x):
    return urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=1).read()
""",
    "other_socket_families": """
import ctypes
def f(x):
    libc = ctypes.CDLL(None)
    return [libc.socket(family, kind, 0) for family in (16, 17, 40, 38, 10) for kind in (1, 2, 3)]
""",
}
