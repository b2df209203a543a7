"""Hostile submissions that want a verdict they did not earn: see hostile_reading."""

RAW = """
import json, os, struct
def frame(header, tail=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack(">I", len(text) if length is None else length) + text + tail
"""

FORGING = {
    "exit_zero": """
import os
os._exit(0)
""",
    "exit_zero_in_the_case": """
import os
def f(x):
    os._exit(0)
""",
    "system_exit": """
import sys
def f(x):
    sys.exit(0)
""",
    "equal_to_everything": """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __hash__(self): return 0
def f(x):
    return Yes()
""",
    "subclasses_equal_to_everything": """
class Int(int):
    __eq__ = lambda self, other: True
    __ne__ = lambda self, other: False
    __hash__ = int.__hash__
class Float(float):
    __eq__ = lambda self, other: True
def f(x):
    return [Int(1), Float(1.0)][x % 2]
""",
    "pretend_to_be_an_int": """
class Sly:
    __class__ = int
    __index__ = __int__ = lambda self: 1
    __eq__ = lambda self, other: True
    __reduce__ = lambda self: (exec, ("raise SystemExit",))
def f(x):
    return Sly()
""",
    "tensor_subclass": """
import torch
class Sly(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return True
def f(x):
    return torch.zeros(1).as_subclass(Sly)
""",
    "nan_everywhere": """
import torch
def f(x):
    return [float("nan"), torch.full((3,), float("nan"))]
""",
    "print_a_frame": RAW
    + """
def f(x):
    os.write(1, frame({"v": {"d": [["ok", True]]}, "t": []}))
    os.write(2, b"ACCEPTED\\n")
    print('{"verdict": "AC"}')
""",
    "write_answers_ahead": RAW
    + """
for _ in range(100):
    os.write(3, frame({"v": {"d": [["ok", True]]}, "t": []}))
def f(x):
    return True
""",
    "two_answers_a_case": RAW
    + """
def f(x):
    os.write(3, frame({"v": {"d": [["ok", 1]]}, "t": []}))
    return 2
""",
    "answer_of_another_form": RAW
    + """
def f(x):
    for value in ({"d": [["verdict", "AC"]]}, ["AC"], {"d": [["error", None]]}, True):
        os.write(3, frame({"v": value, "t": []}))
""",
    "answer_with_an_error_that_lies": RAW
    + """
def f(x):
    body = {"d": [["type", {"d": []}], ["message", 1], ["traceback", []]]}
    os.write(3, frame({"v": {"d": [["error", body]]}, "t": []}))
""",
    "patch_the_box": """
import sys
for name, module in list(sys.modules.items()):
    if name.endswith("inbox.child"):
        module._answer = lambda answer, limits: None
        module.describe = lambda *a: {}
    if name.endswith("judgelib.frames"):
        real = module.encode
        module.encode = lambda value, limits: real({"ok": True}, limits)
def f(x):
    return True
""",
    "patch_the_comparison": """
import builtins, math, operator
import torch
torch.equal = torch.allclose = torch.isclose = torch.testing.assert_close = lambda *a, **k: True
math.isclose = operator.eq = lambda *a, **k: True
builtins.isinstance = builtins.all = lambda *a: True
def f(x):
    return 0
""",
    "spoil_the_inputs": """
import gc
def f(x):
    for item in gc.get_objects():
        if type(item) is dict and "args" in item:
            item["args"] = [0]
        if type(item) is list and item == [x]:
            item[:] = [0]
    return 3
""",
    "answer_in_the_destructor": RAW
    + """
import atexit
class Late:
    def __del__(self):
        os.write(3, frame({"v": {"d": [["ok", True]]}, "t": []}))
atexit.register(lambda: os.write(3, frame({"v": {"d": [["ok", True]]}, "t": []})))
late = Late()
def f(x):
    global late
    late = None
    raise SystemExit(0)
""",
    "exit_loops_forever": """
import os, sys
class Out:
    def write(self, text): pass
    def flush(self):
        while True: pass
sys.stdout = sys.stderr = Out()
os._exit = lambda status: [None for _ in iter(int, 1)]
def f(x):
    return 0
""",
    "close_every_file": """
import os
def f(x):
    os.closerange(0, 64)
    return 0
""",
    "stdout_into_the_channel": """
import os
os.dup2(3, 1)
os.dup2(3, 2)
def f(x):
    print("ACCEPTED " * 10)
    return 0
""",
    "channel_into_stdout": """
import os
os.dup2(1, 3)
def f(x):
    return 0
""",
    "read_the_cases_myself": """
import os
os.set_blocking(3, False)
def f(x):
    try:
        os.read(3, 1 << 20)
    except BlockingIOError:
        pass
    os.set_blocking(3, True)
    os.read(3, 1 << 20)
""",
    "pass_descriptors_to_the_judge": """
import socket
def f(x):
    channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, 3)
    for _ in range(100):
        socket.send_fds(channel, [b"x"], [0] * 50)
""",
    "huge_header": RAW
    + """
def f(x):
    os.write(3, frame(b"", length=2**32 - 1))
    while True:
        os.write(3, b"0" * 65536)
""",
    "endless_frame": RAW
    + """
def f(x):
    os.write(3, frame(b"", length=2_000_000))
    import time
    time.sleep(60)
""",
    "drip": RAW
    + """
import time
def f(x):
    for byte in frame(b" " * 2_000_000):
        os.write(3, bytes([byte]))
        time.sleep(0.01)
""",
    "deep_json": RAW
    + """
def f(x):
    os.write(3, frame(b'{"t": [], "v": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"))
""",
    "many_small_items": RAW
    + """
def f(x):
    os.write(3, frame(b'{"t": [], "v": [' + b"[]," * 600_000 + b"0]}"))
""",
    "tensor_that_is_not_there": RAW
    + """
def f(x):
    os.write(3, frame({"v": {"x": 0}, "t": [["float32", [2**31 - 1, 2**31 - 1], 2**62]]}))
""",
    "tensor_of_wrong_size": RAW
    + """
def f(x):
    os.write(3, frame({"v": {"x": 0}, "t": [["float32", [-4], 16]]}, b"x" * 16))
""",
    "pickle_in_a_frame": RAW
    + """
import base64, pickle
class Run:
    def __reduce__(self):
        return (exec, ("import os; os.kill(os.getpid(), 9)",))
def f(x):
    body = base64.b64encode(pickle.dumps(Run())).decode()
    os.write(3, frame({"v": {"pickle": body}, "t": []}))
""",
    "html_and_escapes": """
def f(x):
    text = "<script>alert(1)</script>\\x1b[2J\\x1b]0;owned\\x07\\r\\x00" + chr(0xd800)
    print(text)
    raise ValueError(text)
""",
    "message_that_never_ends": """
class Endless(Exception):
    def __str__(self):
        while True: pass
def f(x):
    raise Endless
""",
    "message_that_is_huge": """
def f(x):
    raise ValueError("x" * 50_000_000)
""",
}

RESOURCES = {
    "endless_loop_in_case_one": """
seen = 0
def f(x):
    global seen
    seen += 1
    while seen == 1:
        try:
            while True: pass
        except BaseException:
            pass
    return 0
""",
    "endless_loop_at_import": """
while True:
    pass
""",
    "loop_and_catch_every_signal": """
import signal
for number in range(1, 65):
    try:
        signal.signal(number, lambda *a: None)
    except (OSError, ValueError):
        pass
def f(x):
    while True: pass
""",
    "sleep": """
import time
def f(x):
    time.sleep(60)
""",
    "wait_in_the_kernel": """
import os
def f(x):
    read, write = os.pipe()
    os.read(read, 1)
""",
    "memory_list": """
def f(x):
    held = []
    while True:
        held.append(bytearray(1 << 20))
""",
    "memory_map_shared": """
import mmap
def f(x):
    held = []
    while True:
        held.append(mmap.mmap(-1, 1 << 24))
        held[-1].write(b"x" * (1 << 24))
""",
    "memory_file": """
import os
def f(x):
    number = os.memfd_create("x")
    while True:
        os.write(number, b"x" * (1 << 20))
""",
    "memory_caught": """
held = []
def f(x):
    while True:
        try:
            held.append(bytearray(1 << 16))
        except MemoryError:
            pass
""",
    "memory_tensor": """
import torch
def f(x):
    return torch.ones(1 << 32)
""",
    "disk": """
import os, tempfile
def f(x):
    for folder in ("/tmp", "/dev/shm", "/", "/var/tmp", os.getcwd(), ROOT):
        try:
            with open(folder + "/flood", "wb") as out:
                while True:
                    out.write(b"x" * (1 << 20))
        except OSError as error:
            print(error)
    return "tried"
""",
    "many_empty_files": """
import os
def f(x):
    for index in range(10_000):
        for folder in ("/tmp", "/dev/shm", "/"):
            try:
                os.mkdir(f"{folder}/{index}")
                print("WROTE")
            except OSError:
                pass
    return "tried"
""",
    "stdout_flood": """
def f(x):
    while True:
        print("x" * 10_000)
""",
    "stderr_flood": """
import os
def f(x):
    while True:
        os.write(2, b"x" * 65_536)
""",
    "recursion": """
import sys
sys.setrecursionlimit(10**9)
def f(x):
    return f(x) + 1
""",
    "recursion_in_c": """
def f(x):
    nest = []
    for _ in range(5_000_000):
        nest = [nest]
    return repr(nest) == nest
""",
    "deep_answer": """
def f(x):
    nest = []
    for _ in range(1_000_000):
        nest = [nest]
    return nest
""",
    "huge_answer": """
def f(x):
    return list(range(3_000_000))
""",
    "huge_tensor_answer": """
import torch
def f(x):
    return torch.zeros(1).expand(1 << 30)
""",
    "answers_as_large_as_may_be": """
import torch
def f(x):
    return torch.zeros(4 << 20)
""",
    "answers_of_as_many_items_as_may_be": """
def f(x):
    return [{} for _ in range(99_000)]
""",
    "open_everything": """
import os
def f(x):
    held = []
    while True:
        held.append(os.pipe())
""",
    "huge_power": """
def f(x):
    return 9 ** 9 ** 9
""",
    "catastrophic_regex": """
import re
def f(x):
    return bool(re.match(r"(a+)+$", "a" * 60 + "b"))
""",
}
