"""Hostile submissions that want to live longer, be more, or end somebody: see hostile_reading."""

PROCESSES = {
    "fork_bomb": """
import os
def f(x):
    while True:
        try:
            os.fork()
        except OSError:
            pass
""",
    "thread_bomb": """
import threading, time
def f(x):
    for _ in range(10_000):
        threading.Thread(target=time.sleep, args=(60,)).start()
""",
    "thread_that_answers_for_me": """
import threading
def f(x):
    threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
    return 0
""",
    "leave_a_daemon": """
import os, time
def f(x):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(30)
        os._exit(0)
    return 0
""",
    "vfork_by_hand": """
import ctypes
def f(x):
    return ctypes.CDLL(None).vfork()
""",
    "clone_by_number": """
import ctypes, platform
def f(x):
    number = 56 if platform.machine() == "x86_64" else 220
    return ctypes.CDLL(None).syscall(number, 0, 0, 0, 0, 0)
""",
    "clone3_by_number": """
import ctypes
def f(x):
    words = (ctypes.c_uint64 * 11)()
    got = ctypes.CDLL(None, use_errno=True).syscall(435, words, 88)
    return "GOT A PROCESS" if got >= 0 else "nothing"
""",
    "run_a_shell": """
import os
def f(x):
    return os.popen("cat " + SECRET_FILE).read()
""",
    "exec_over_myself": """
import os, sys
def f(x):
    for path in ("/bin/sh", "/usr/bin/env", sys.executable):
        try:
            os.execv(path, [path, "-c", "exit 0"])
        except OSError:
            pass
    return "nothing"
""",
    "start_a_pool": """
import multiprocessing
def f(x):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(abs, [1, 2])
""",
    "kill_the_keeper": """
import os, signal
def f(x):
    os.kill(os.getppid(), signal.SIGKILL)
    return 0
""",
    "stop_the_judge": """
import os, signal
def f(x):
    os.kill(PID, signal.SIGSTOP)
    return 0
""",
    "kill_everybody": """
import os, signal
def f(x):
    os.kill(-1, signal.SIGKILL)
    os.killpg(0, signal.SIGKILL)
    return 0
""",
    "kill_by_number": """
import ctypes, os, platform
def f(x):
    libc, parent = ctypes.CDLL(None), os.getppid()
    tgkill, tkill = (234, 200) if platform.machine() == "x86_64" else (131, 130)
    return [libc.syscall(tgkill, parent, parent, 9), libc.syscall(tkill, parent, 9)]
""",
    "queue_a_signal": """
import ctypes, os
def f(x):
    return ctypes.CDLL(None).sigqueue(os.getppid(), 9, 0)
""",
    "signal_by_file_owner": """
import fcntl, os, socket
def f(x):
    ours, theirs = socket.socketpair()
    fcntl.fcntl(ours, fcntl.F_SETOWN, os.getppid())
    fcntl.fcntl(ours, 10, 9)
    fcntl.fcntl(ours, fcntl.F_SETFL, fcntl.fcntl(ours, fcntl.F_GETFL) | os.O_ASYNC)
    theirs.send(b"x")
    return 0
""",
    "outlive_the_parent": """
import ctypes, os, signal, time
def f(x):
    ctypes.CDLL(None).prctl(1, 0)
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
    time.sleep(60)
""",
    "nested_namespaces": """
import ctypes
def f(x):
    libc = ctypes.CDLL(None)
    return [libc.unshare(flag) for flag in (0x10000000, 0x20000000, 0x40000000, 0x00020000)]
""",
    "mount_something": """
import ctypes
def f(x):
    return ctypes.CDLL(None).mount(b"proc", b"/usr/lib", b"proc", 0, None)
""",
    "become_root": """
import os
def f(x):
    for change in (os.setuid, os.setgid, os.seteuid):
        change(0)
    os.setgroups([0])
    return "GOT ROOT"
""",
    "gain_capabilities": """
import ctypes, platform
def f(x):
    words = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
    head = (ctypes.c_uint32 * 2)(0x20080522, 0)
    number = 126 if platform.machine() == "x86_64" else 91
    return "GOT ROOT" if ctypes.CDLL(None).syscall(number, head, words) == 0 else "nothing"
""",
    "keyring": """
import ctypes, platform
def f(x):
    number = 248 if platform.machine() == "x86_64" else 217
    return ctypes.CDLL(None).syscall(number, b"user", b"name", b"value", 5, -3)
""",
    "io_uring": """
import ctypes
def f(x):
    return ctypes.CDLL(None).syscall(425, 8, (ctypes.c_uint32 * 30)())
""",
    "bpf_and_perf": """
import ctypes, platform
def f(x):
    libc, x86 = ctypes.CDLL(None), platform.machine() == "x86_64"
    return [libc.syscall(298 if x86 else 241, (ctypes.c_uint32 * 30)(), 0, -1, -1, 0),
            libc.syscall(321 if x86 else 280, 0, (ctypes.c_uint32 * 30)(), 120)]
""",
    "other_calling_convention": """
import ctypes
def f(x):
    got = ctypes.CDLL(None).syscall(0x40000000 + 57)
    return "GOT A PROCESS" if got >= 0 else "nothing"
""",
    "every_quiet_call": """
import ctypes, platform
SKIP = {"x86_64": {0, 15, 23, 34, 35, 60, 61, 130, 128, 202, 219, 230, 231, 232, 270, 271, 281, 7},
        "aarch64": {22, 63, 72, 73, 93, 94, 98, 101, 115, 128, 133, 137, 139}}[platform.machine()]
def f(x):
    libc = ctypes.CDLL(None)
    for number in range(470, 700):
        libc.syscall(number, 0, 0, 0, 0, 0, 0)
    for number in range(0, 470):
        if number not in SKIP:
            libc.syscall(number, -1, -1, -1, -1, -1, -1)
    return "survived"
""",
    "take_the_filter_off": """
import ctypes, os
def f(x):
    libc = ctypes.CDLL(None)
    print([libc.prctl(option, *[0] * 4) for option in (38, 22, 4, 1)], libc.syscall(317, 0, 0, 0))
    return open(SECRET_FILE).read()
""",
    "raise_my_limits": """
import resource
def f(x):
    for name in ("AS", "CPU", "FSIZE", "NOFILE", "NPROC"):
        which = getattr(resource, "RLIMIT_" + name)
        for change in (lambda: resource.setrlimit(which, (1 << 40, 1 << 40)),
                       lambda: resource.prlimit(0, which, (1 << 40, 1 << 40)),
                       lambda: resource.prlimit(PID, which, (0, 0))):
            try:
                change()
                print("RAISED", name)
            except (OSError, ValueError):
                pass
    return bytearray(1 << 30)
""",
    "push_terminal_input": """
import fcntl
def f(x):
    for number in range(4):
        try:
            fcntl.ioctl(number, 0x5412, b"x")
        except OSError:
            pass
    return open("/dev/tty", "w").write("x")
""",
    "crash": """
import ctypes
def f(x):
    ctypes.string_at(0)
""",
    "abort": """
import os
def f(x):
    os.abort()
""",
    "stop_myself": """
import os, signal
def f(x):
    os.kill(os.getpid(), signal.SIGSTOP)
""",
    "poison_what_was_loaded": """
import builtins, gc, linecache, os, sys
import torch
def poison():
    builtins.sum = builtins.len = lambda *a: 0
    torch.add = torch.matmul = torch.Tensor.__add__ = lambda *a, **k: torch.zeros(1)
    sys.meta_path.clear()
    linecache.cache.clear()
    os.environ["PYTHONPATH"] = ROOT
    for name in list(sys.modules):
        if name.startswith("practice"):
            for key in list(vars(sys.modules[name])):
                setattr(sys.modules[name], key, None)
    sys.modules.clear()
def f(x):
    poison()
    return 0
""",
    "poison_memory": """
import ctypes, mmap
def f(x):
    for address in (id(None), id(True), id(int)):
        ctypes.memset(address, 0x41, 64)
    return 0
""",
    "poison_the_import": """
import sys
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        raise SystemExit(0)
sys.meta_path.insert(0, Finder)
sys.exit(0)
""",
    "write_to_the_interpreter": """
import os, sys
def f(x):
    for path in (sys.executable, os.__file__, "/judge/practice/judgelib/frames.py",
                 ROOT + "/practice/judgelib/frames.py", ROOT + "/practice/judgelib/evil.py"):
        for flags in (os.O_WRONLY, os.O_WRONLY | os.O_CREAT, os.O_WRONLY | os.O_TRUNC):
            try:
                os.close(os.open(path, flags))
                print("WROTE", path)
            except OSError:
                pass
        for change in (os.unlink, os.rmdir, os.utime, lambda p: os.chmod(p, 0o777),
                       lambda p: os.rename(p, p + "x"), lambda p: os.truncate(p, 0),
                       lambda p: os.mkdir(p + ".d")):
            try:
                change(path)
                print("WROTE", path)
            except OSError:
                pass
    return "tried"
""",
}
