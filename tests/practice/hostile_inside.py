"""Hostile submissions that work on the box's own code beside them: see hostile_reading.

They hold what the child holds: its modules, its frames, its socket. None of it knows an answer.
"""

from hostile_forging import RAW

INSIDE = {
    "patch_what_the_reporter_calls": """
import builtins, json, os, struct, sys
real_pack, real_dumps, real_write = struct.pack, json.dumps, os.write
struct.pack = lambda *a: b"\\0\\0\\0\\0" if a[0] == ">I" else real_pack(*a)
json.dumps = lambda *a, **k: '{"v":{"d":[["ok",true]]},"t":[]}'
builtins.type = lambda *a: int
builtins.len = lambda x: 1
def f(x):
    return x
""",
    "patch_the_packer": """
import sys
for name, module in list(sys.modules.items()):
    if name.endswith("judgelib.values"):
        module.INT_BOUND = 2**4000
        module.Packer.pack = lambda self, value, depth=0: {"d": [["ok", {"f": "nan"}]]}
        module.KEY_TYPES = (object,)
    if name.endswith("judgelib.tensorbytes"):
        module.describe = lambda tensor: ["float32", [2**20, 2**20], 2**42]
def f(x):
    return 7 ** 90
""",
    "patch_the_entry_of_the_loop": """
import sys
frame = sys._getframe()
while frame:
    if frame.f_code.co_name in ("_serve", "live"):
        frame.f_locals["call"] = lambda case: True
        frame.f_globals["_answer"] = lambda answer, limits: None
        frame.f_globals["_fill"] = lambda buffer: None
        frame.f_globals["RESULT"] = 1
    frame = frame.f_back
def f(x):
    return 1
""",
    "answer_a_value_that_changes_later": """
import sys
kept = []
def f(x):
    kept.append([0])
    for one in kept:
        one[0] = x
    return kept
""",
    "return_the_case_itself": """
import sys
def f(x):
    frame = sys._getframe()
    while frame and "case" not in frame.f_locals:
        frame = frame.f_back
    case = frame.f_locals["case"]
    case["args"] = case
    return case
""",
    "sockets_from_the_garbage": RAW
    + """
import gc, socket
def f(x):
    found = [item for item in gc.get_objects() if isinstance(item, socket.socket)]
    for sock in found:
        try:
            sock.setblocking(False)
            sock.send(frame({"v": {"d": [["ok", True]]}, "t": []}))
            if sock.fileno() != 3:  # a number of the box's own that is now the channel's
                print("GOT A SOCKET", sock)
        except OSError:
            pass
    return len(found)
""",
    "an_audit_hook": """
import sys
events = []
def hook(event, args):
    events.append((event, repr(args)[:80]))
    if event in ("os._exit", "sys._getframe"):
        raise RuntimeError("no")
sys.addaudithook(hook)
def f(x):
    return repr(events)[:1000]
""",
    "a_meta_path_for_the_driver": """
import sys, types
class Always:
    def find_spec(self, name, path=None, target=None): return None
sys.meta_path[:] = [Always()]
sys.modules["driver"] = types.SimpleNamespace(run=lambda case: True)
sys.modules["practice.judgelib.frames"] = types.SimpleNamespace(encode=lambda *a: b"")
def f(x):
    return True
""",
    "async_left_open": """
import asyncio
async def forever():
    try:
        while True:
            yield 1
    finally:
        while True:
            pass
kept = forever()
def f(x):
    try:
        kept.__anext__().send(None)
    except StopIteration:
        pass
    return asyncio.run(asyncio.sleep(0))
""",
    "a_destructor_that_loops": """
class Loop:
    def __del__(self):
        while True: pass
def f(x):
    Loop()
    return 1
""",
    "signals_that_answer": RAW
    + """
import signal
def again(*_):
    os.write(3, frame({"v": {"d": [["ok", 1]]}, "t": []}))
signal.signal(signal.SIGALRM, again)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
def f(x):
    import time
    time.sleep(0.2)
    return 0
""",
    "stop_myself": """
import os, signal
def f(x):
    os.kill(os.getpid(), signal.SIGSTOP)
    return 0
""",
    "out_of_band": """
import socket
def f(x):
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, 3)
    for _ in range(1000):
        channel.send(b"x", socket.MSG_OOB)
    while True: pass
""",
    "half_a_close": """
import socket
def f(x):
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, 3)
    channel.shutdown(socket.SHUT_RDWR)
    while True: pass
""",
    "a_type_with_a_hostile_name": """
class Meta(type):
    @property
    def __name__(cls):
        while True: pass
class Odd(Exception, metaclass=Meta):
    pass
def f(x):
    raise Odd
""",
    "an_error_whose_traceback_is_endless": """
def f(x):
    error = ValueError("x")
    try:
        raise error
    except ValueError as caught:
        trace = caught.__traceback__
    for _ in range(200_000):
        trace = type(trace)(trace, trace.tb_frame, 0, 1)
    raise error.with_traceback(trace)
""",
    "errors_that_hold_each_other": """
def f(x):
    error = ValueError("x")
    for _ in range(100_000):
        group = ExceptionGroup("x", [error])
        group.__cause__ = error
        error = group
    error.__context__ = error
    raise error
""",
    "lines_of_ten_megabytes": """
def f(x):
    exec(compile("x = '" + "a" * 10_000_000 + "'; 1 / 0", "submission.py", "exec"))
""",
    "linecache_that_lies": """
import linecache
class Lines(dict):
    def __contains__(self, key):
        while True: pass
    get = __getitem__ = __contains__
linecache.cache = Lines()
linecache.getlines = linecache.updatecache = lambda *a: ["x" * 1_000_000] * 1000
def f(x):
    return 1 / 0
""",
    "dict_and_list_with_own_ways": """
class Pairs(dict):
    def items(self):
        while True:
            yield 1, 1
class Endless(list):
    def __iter__(self):
        while True:
            yield 1
def f(x):
    return [Pairs(), Endless()][x % 2]
""",
    "an_int_of_a_million_digits": """
import sys
def f(x):
    sys.set_int_max_str_digits(0)
    return {10 ** 1_000_000: [1 << 4_000_000]}
""",
    "floats_that_weigh": RAW
    + """
def f(x):
    digits = b"0." + b"1" * 900_000
    os.write(3, frame(b'{"t": [], "v": {"d": [["ok", [' + digits + b", " + digits + b"]]]}}"))
""",
    "keys_that_collide": RAW
    + """
def f(x):
    pairs = b", ".join(b"[%r, 0]" % (2.0 ** (61 * k)) for k in range(-16, 16)) * 1
    many = b", ".join(b"[%d, 0]" % (x << 20) for x in range(-40_000, 40_000))
    os.write(3, frame(b'{"t": [], "v": {"d": [["ok", {"d": [' + many + b"]}]]}}"))
""",
    "strange_tensors": """
import torch
def f(x):
    base = torch.zeros(4)
    made = [
        torch.as_strided(base, (1 << 20, 1 << 20), (0, 0)),
        torch.zeros(3).to_sparse(), torch.zeros(3, device="meta"),
        torch.quantize_per_tensor(torch.zeros(3), 0.1, 0, torch.quint8),
        torch.zeros(3, dtype=torch.complex64).conj(), torch.nested.nested_tensor([base]),
        torch.nn.Parameter(base), torch.zeros(3, requires_grad=True) * 2,
        torch.zeros(0, 1 << 31), torch.zeros(*[1] * 40),
    ]
    return [made[x % len(made)], float("nan")]
""",
    "a_tensor_whose_memory_is_gone": """
import torch
def f(x):
    one = torch.zeros(1 << 20)
    one.set_(one.untyped_storage(), 0, (1 << 20,))
    one.untyped_storage().resize_(0)
    return one
""",
    "patch_tensor_methods": """
import torch
torch.Tensor.detach = lambda self: self
torch.Tensor.contiguous = lambda self: torch.zeros(1)
torch.Tensor.shape = property(lambda self: (1 << 20,))
def f(x):
    return torch.zeros(3)
""",
    "read_all_that_is_loaded": """
import gc, linecache, sys
def f(x):
    words = []
    for module in list(sys.modules.values()):
        for name, value in list(vars(module).items()):
            if isinstance(value, str):
                words.append(value)
    words += [line for entry in linecache.cache.values() for line in map(str, entry)]
    words += [repr(item)[:500] for item in gc.get_objects() if type(item) in (dict, list, tuple)]
    words += [repr(sys.argv), repr(sys.path), repr(sys.orig_argv)]
    text = "\\n".join(words)
    for sign in ("token-", "expected(", "* 7 + 3", "oracle"):
        at = text.find(sign)
        if at >= 0 and "words +=" not in text[at - 200:at + 200]:
            print(sign, text[at:at + 60])
    return "tried"
""",
    "answer_by_the_clock": """
import time
def f(x):
    return time.perf_counter_ns() % 2 ** 31
""",
    "monitor_the_box": """
import sys
if sys.version_info >= (3, 12):
    sys.monitoring.use_tool_id(0, "x")
    sys.monitoring.set_events(0, sys.monitoring.events.LINE | sys.monitoring.events.CALL)
    sys.monitoring.register_callback(0, sys.monitoring.events.LINE, lambda *a: None)
sys.setswitchinterval(1e9)
sys.setrecursionlimit(30)
def f(x):
    return 1
""",
    "gc_callbacks": """
import gc
def loop(phase, info):
    while True: pass
gc.callbacks.append(loop)
gc.set_threshold(1)
def f(x):
    return [[] for _ in range(1000)]
""",
    "memory_behind_the_counter": """
import mmap, os
def f(x):
    held = []
    while True:
        held.append(mmap.mmap(-1, 1 << 22, mmap.MAP_SHARED))
        held[-1][:] = b"x" * (1 << 22)
        try:
            read, write = os.pipe()
            os.set_blocking(write, False)
            os.write(write, b"x" * (1 << 20))
        except OSError:
            pass
""",
    "poke_the_frozen_objects": """
import ctypes
def f(x):
    ctypes.c_ssize_t.from_address(id(())).value = 0
    ctypes.c_int.from_address(id(3) + 24).value = 4
    return 1 + 2
""",
    "jump_into_nothing": """
import ctypes
def f(x):
    ctypes.CFUNCTYPE(None)(8)()
""",
    "machine_code": """
import ctypes, mmap, platform
def f(x):
    # exit_group(0), written by hand
    code = bytes.fromhex("31ffb8e7000000" + "0f05")
    if platform.machine() != "x86_64":
        return 0
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    ctypes.CFUNCTYPE(None)(address)()
""",
    "old_calling_convention": """
import ctypes, mmap, platform
def f(x):
    # int 0x80 with the number of fork in the calls of 32 bits
    code = bytes.fromhex("b802000000" + "cd80" + "c3")
    if platform.machine() != "x86_64":
        return "nothing"
    page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    page.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    got = ctypes.CFUNCTYPE(ctypes.c_int)(address)()
    return "GOT A PROCESS" if got >= 0 else "nothing"
""",
    "what_may_be_asked_of_files_outside": """
import os
def f(x):
    for path in (f"/proc/{PID}/cwd", f"/proc/{PID}/exe", f"/proc/{os.getppid()}/cwd",
                 f"/proc/{PID}/fd/0", f"/proc/{PID}/root"):
        try:
            print("GOT A LINK", os.readlink(path))
        except OSError:
            pass
    for change in (lambda: os.chdir("/"), lambda: os.chroot("/"), lambda: os.nice(-5),
                   lambda: os.sched_setaffinity(PID, {0}), lambda: os.setpriority(0, PID, 19),
                   lambda: os.mknod("/tmp/x"), lambda: os.setxattr(SECRET_FILE, "user.x", b"1"),
                   lambda: os.utime(SECRET_FILE), lambda: os.truncate(SECRET_FILE, 0)):
        try:
            change()
            print("WROTE")
        except OSError:
            pass
    return "tried"
""",
}
