"""Which system calls a submission may make, as a filter that it cannot take off again.

An allow-list: what Python and torch need on one thread with the files and pipes they hold. Other
calls fail with EPERM. Calls that no exercise makes by accident end the process with SIGSYS, which
the judge reports as a violation.
"""

import ctypes
import errno
from collections.abc import Iterable
from typing import NamedTuple

from practice.judgelib.sandbox import bpf, libc
from practice.judgelib.sandbox.syscalls import AUDIT_ARCH, machine, number

PR_SET_SECCOMP, MODE_FILTER = 22, 2
SECCOMP_CALL = {"x86_64": 317, "aarch64": 277}
GET_ACTION_AVAILABLE = 2
X32_BIT = 0x4000_0000
CLONE_THREAD = 0x0001_0000

ALLOWED = {
    "files": (
        "read write readv writev pread64 pwrite64 close close_range fstat stat lstat "
        "newfstatat statx lseek access faccessat faccessat2 open openat readlink readlinkat "
        "getcwd getdents64 dup dup2 dup3 pipe pipe2 fadvise64 umask poll ppoll select "
        "pselect6 epoll_create1 epoll_ctl epoll_wait epoll_pwait shutdown "
        "getsockname getpeername"
    ),
    "memory": "mmap mprotect munmap mremap madvise msync brk",
    "signals, to oneself": (
        "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait rt_sigpending rt_sigsuspend "
        "pause sigaltstack alarm setitimer getitimer"
    ),
    "one thread's life": (
        "futex set_robust_list rseq membarrier sched_yield sched_getaffinity getpriority "
        "nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time times exit "
        "exit_group restart_syscall"
    ),
    "what am I": (
        "getpid getppid gettid getuid geteuid getgid getegid getrandom getrusage getrlimit "
        "uname sysinfo"
    ),
}

KILLED = {
    "other processes": (
        "fork vfork execve execveat ptrace process_vm_readv process_vm_writev pidfd_open "
        "pidfd_getfd pidfd_send_signal rt_sigqueueinfo rt_tgsigqueueinfo"
    ),
    "the network": "socket connect bind listen accept accept4 sendmsg sendmmsg",
    "another root or namespace": (
        "unshare setns mount umount2 pivot_root chroot move_mount open_tree fsopen fsmount "
        "mount_setattr"
    ),
    "the kernel itself": (
        "keyctl add_key request_key bpf io_uring_setup io_uring_enter io_uring_register "
        "perf_event_open userfaultfd init_module finit_module delete_module kexec_load "
        "kexec_file_load reboot"
    ),
    "another user": (
        "setuid setgid setreuid setregid setresuid setresgid setgroups capset personality"
    ),
}

# The C library has another way where these are missing, and takes it only for this errno.
ABSENT = ["clone3"]


class OneOf(NamedTuple):
    """The lower half of an argument must be one of these."""

    argument: int
    values: Iterable[int]


class Zero(NamedTuple):
    """All 64 bits of an argument must be zero."""

    argument: int


Condition = OneOf | Zero
SOL_SOCKET, AF_UNIX = 1, 1
MSG_PEEK, MSG_DONTWAIT, MSG_WAITALL, MSG_NOSIGNAL = 0x2, 0x40, 0x100, 0x4000


def conditional(pid: int) -> list[tuple[str, list[Condition], int]]:
    """Return (call, what must hold, verdict otherwise) for the process `pid`.

    fcntl and ioctl are cut to the harmless commands: F_SETOWN and FIOSETOWN send signals.
    """
    eperm = bpf.refuse(errno.EPERM)
    only_me = [0, pid]
    return [
        ("ioctl", [OneOf(1, [0x5401, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451])], eperm),
        ("fcntl", [OneOf(1, [0, 1, 2, 3, 4, 1030])], eperm),
        ("prctl", [OneOf(0, [15, 16])], eperm),  # the process's own name
        ("prlimit64", [OneOf(0, only_me), Zero(2)], eperm),
        ("kill", [OneOf(0, [pid])], bpf.KILL),
        ("tgkill", [OneOf(0, [pid])], bpf.KILL),
        ("tkill", [OneOf(0, [pid])], bpf.KILL),
        # An event loop wakes itself through a pair of sockets; neither end leaves the process.
        ("socketpair", [OneOf(0, [AF_UNIX])], bpf.KILL),
        # Not out of band: what MSG_OOB does to such a pair has been a way into the kernel.
        ("sendto", [Zero(4), OneOf(3, [0, MSG_DONTWAIT, MSG_NOSIGNAL])], bpf.KILL),
        ("recvfrom", [OneOf(3, [0, MSG_PEEK, MSG_DONTWAIT, MSG_WAITALL])], bpf.KILL),
        ("getsockopt", [OneOf(1, [SOL_SOCKET]), OneOf(2, [3, 4, 38, 39])], eperm),
    ]


def build(arch: str, pid: int) -> bytes:
    """Return the filter for a process of `arch` whose id is `pid`, as the kernel takes it."""
    program = [
        bpf.load(bpf.ARCH),
        bpf.if_equal(AUDIT_ARCH[arch], skip=1),
        bpf.give(bpf.KILL),
        bpf.load(bpf.NUMBER),
    ]
    if arch == "x86_64":
        # The same numbers with this bit are another calling convention: a way around the list.
        program += [bpf.unless_at_least(X32_BIT, skip=1), bpf.give(bpf.KILL)]
    for name in _names(ALLOWED):
        program += _when(name, arch, [bpf.give(bpf.ALLOW)])
    for name, conditions, otherwise in conditional(pid):
        program += _when(name, arch, _conditional(conditions, otherwise))
    threads = bpf.refuse(errno.EAGAIN)
    program += _when(
        "clone",
        arch,
        [
            bpf.load(bpf.low(0)),
            bpf.if_any_bit(CLONE_THREAD, skip=1),
            bpf.give(bpf.KILL),
            bpf.give(threads),
        ],
    )
    for name in _names(KILLED):
        program += _when(name, arch, [bpf.give(bpf.KILL)])
    for name in ABSENT:
        program += _when(name, arch, [bpf.give(bpf.refuse(errno.ENOSYS))])
    program.append(bpf.give(bpf.refuse(errno.EPERM)))
    return bpf.assemble(program)


def available() -> bool:
    """Whether this machine can run such a filter."""
    arch = machine()
    if arch is None:
        return False
    verdict = ctypes.c_uint32(bpf.KILL)
    try:
        libc.syscall(SECCOMP_CALL[arch], GET_ACTION_AVAILABLE, 0, ctypes.pointer(verdict))
    except OSError:
        return False
    return True


def install(pid: int) -> None:
    """Put the filter on this process, for good; it must have given up new privileges before."""
    arch = machine()
    assert arch is not None, "no filter for this machine"
    code = build(arch, pid)
    buffer = ctypes.create_string_buffer(code, len(code))
    program = _Program(len(code) // 8, ctypes.cast(buffer, ctypes.c_void_p))
    libc.prctl(PR_SET_SECCOMP, MODE_FILTER, ctypes.pointer(program))


class _Program(ctypes.Structure):
    """`struct sock_fprog`: how many instructions, and where."""

    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _names(groups: dict[str, str]) -> list[str]:
    return " ".join(groups.values()).split()


def _when(name: str, arch: str, block: list[bpf.Instruction]) -> list[bpf.Instruction]:
    """Run `block`, which ends in a verdict, where the call is `name`."""
    wanted = number(name, arch)
    return [] if wanted is None else [bpf.unless_equal(wanted, len(block)), *block]


def _conditional(conditions: list[Condition], otherwise: int) -> list[bpf.Instruction]:
    """Allow where all conditions hold, else give the other verdict."""
    block: list[bpf.Instruction] = []
    for condition in conditions:
        if isinstance(condition, Zero):
            halves = [bpf.low(condition.argument), bpf.high(condition.argument)]
            block += [part for half in halves for part in _require(half, [0], otherwise)]
        else:
            block += _require(bpf.low(condition.argument), list(condition.values), otherwise)
    return [*block, bpf.give(bpf.ALLOW)]


def _require(offset: int, values: list[int], otherwise: int) -> list[bpf.Instruction]:
    tests = [bpf.if_equal(value, skip=len(values) - index) for index, value in enumerate(values)]
    return [bpf.load(offset), *tests, bpf.give(otherwise)]
