"""What Linux can put around a process: limits, no privileges, Landlock for files, seccomp for system calls.

Each wall is tried on its own and says whether it stands: an old kernel or a container without Landlock keeps the
others. Everything here runs in a child that is about to start a program, under a bare interpreter without
site-packages: standard library only, and no import of ours.

These walls keep a small model's accidents in. They are no security boundary for hostile code: file metadata stays
visible, the kernel is shared, and what lies under /usr may be read.
"""

from __future__ import annotations

import ctypes
import os
import resource
import struct
import sys

FILE_BYTES = 16_000_000
FOLDER_BYTES = 64_000_000
MEMORY_BYTES = 1_000_000_000
OPEN_FILES = 64
SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32")
SYSTEM_FILES = ("/etc/ld.so.cache", "/dev/urandom", "/dev/random", "/dev/zero")

_PR_SET_PDEATHSIG, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 22, 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on every architecture
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _REMOVE_DIR, _REMOVE_FILE = (1 << bit for bit in range(6))
_MAKE_DIR, _MAKE_REG, _REFER, _TRUNCATE, _IOCTL_DEV = 1 << 7, 1 << 8, 1 << 13, 1 << 14, 1 << 15
_FIRST_ABI = (1 << 13) - 1
_LOOK = _READ_FILE | _READ_DIR
_WORK = _LOOK | _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _REFER | _TRUNCATE  # no links

_SIGKILL = 9
_EPERM, _ENOSYS, _AF_UNIX, _CLONE_THREAD = 1, 38, 1, 0x10000
_KILL, _ERRNO, _ALLOW = 0x80000000, 0x00050000, 0x7FFF0000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06

_NEWER = {  # numbered alike everywhere
    "pidfd_send_signal": 424, "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433, "pidfd_open": 434, "clone3": 435,
    "pidfd_getfd": 438, "mount_setattr": 442, "fchmodat2": 452,
}  # fmt: skip
_X86_64 = _NEWER | {
    "chown": 92, "fchmod": 91, "fchown": 93, "lchown": 94, "setpriority": 141, "sched_setparam": 142,
    "sched_setscheduler": 144, "sched_setaffinity": 203, "ioprio_set": 251, "fchownat": 260, "futimesat": 261,
    "fchmodat": 268, "utimensat": 280, "sched_setattr": 314,
    "shmget": 29, "socket": 41, "connect": 42, "accept": 43, "sendto": 44, "sendmsg": 46, "bind": 49, "listen": 50,
    "socketpair": 53, "clone": 56, "fork": 57, "vfork": 58, "execve": 59, "kill": 62, "semget": 64, "msgget": 68,
    "ptrace": 101, "syslog": 103, "setpgid": 109, "setsid": 112, "rt_sigqueueinfo": 129, "mknod": 133, "personality": 135,
    "pivot_root": 155, "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165, "umount2": 166,
    "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173,
    "init_module": 175, "delete_module": 176, "quotactl": 179, "tkill": 200, "clock_settime": 227, "tgkill": 234,
    "mq_open": 240, "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "mknodat": 259, "unshare": 272,
    "rt_tgsigqueueinfo": 297, "perf_event_open": 298, "fanotify_init": 300, "prlimit64": 302, "name_to_handle_at": 303,
    "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311,
    "kcmp": 312, "finit_module": 313, "kexec_file_load": 320, "bpf": 321, "execveat": 322, "userfaultfd": 323,
}  # fmt: skip
_AARCH64 = _NEWER | {
    "ioprio_set": 30, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55, "utimensat": 88, "sched_setparam": 118,
    "sched_setscheduler": 119, "sched_setaffinity": 122, "setpriority": 140, "sched_setattr": 274,
    "mknodat": 33, "umount2": 39, "mount": 40, "pivot_root": 41, "chroot": 51, "quotactl": 60, "acct": 89,
    "personality": 92, "unshare": 97, "kexec_load": 104, "init_module": 105, "delete_module": 106, "clock_settime": 112,
    "syslog": 116, "ptrace": 117, "kill": 129, "tkill": 130, "tgkill": 131, "rt_sigqueueinfo": 138, "reboot": 142,
    "setpgid": 154, "setsid": 157, "sethostname": 161, "setdomainname": 162, "settimeofday": 170, "adjtimex": 171,
    "mq_open": 180, "msgget": 186, "semget": 190, "shmget": 194, "socket": 198, "socketpair": 199, "bind": 200,
    "listen": 201, "accept": 202, "connect": 203, "sendto": 206, "sendmsg": 211, "add_key": 217, "request_key": 218,
    "keyctl": 219, "clone": 220, "execve": 221, "swapon": 224, "swapoff": 225, "rt_tgsigqueueinfo": 240,
    "perf_event_open": 241, "prlimit64": 261, "fanotify_init": 262, "name_to_handle_at": 264, "open_by_handle_at": 265,
    "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270, "process_vm_writev": 271, "kcmp": 272,
    "finit_module": 273, "bpf": 280, "execveat": 281, "userfaultfd": 282, "kexec_file_load": 294,
}  # fmt: skip
_ARCHITECTURES = {"x86_64": (0xC000003E, _X86_64), "aarch64": (0xC00000B7, _AARCH64)}
_CHECKED = ("socketpair", "clone", "clone3", "kill", "tgkill", "prlimit64", "execve", "execveat")
# Landlock knows no metadata, and a descriptor may be of any file that can be read. Programs are fenced in by their
# arguments, and cp and touch need these; code may change what the audit hook has seen the path of.
_BY_DESCRIPTOR = ("fchmod", "fchown", "chown", "lchown", "fchownat", "futimesat")
_FROM_FOLDER = ("fchmodat", "fchmodat2", "utimensat")
_AT_FDCWD = 0xFFFFFF9C


def die_with_parent() -> None:
    """Have the kernel end this process when the one that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(_SIGKILL), *_zeros(3))


def raise_walls(folder: str, seconds: int, *, runs_code: bool, libc: ctypes.CDLL | None = None) -> list[str]:
    """Put every wall there is around this process and say which stand. `runs_code`: no program is to be started."""
    standing = [*_limit_resources(seconds, runs_code)]
    if sys.platform != "linux":
        return standing
    libc = libc or ctypes.CDLL(None)
    die_with_parent()
    if libc.prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), *_zeros(3)) == 0:
        standing.append("no new privileges")
    if os.geteuid() == 0 and _drop_capabilities(libc):
        standing.append("no capabilities of root")
    abi = _restrict_files(libc, folder, runs_code)
    if abi:
        standing.append(
            f"Landlock (ABI {abi}): files written only in the folder, read there and in the system's libraries"
        )
    if _filter_calls(libc, runs_code):
        standing.append("seccomp: no network, no other processes, no tracing, mounting or kernel interfaces")
    return standing


def _zeros(count: int) -> tuple[ctypes.c_ulong, ...]:
    return (ctypes.c_ulong(0),) * count


def _limit_resources(seconds: int, runs_code: bool) -> list[str]:
    limits = [
        ("RLIMIT_CPU", seconds + 1),
        ("RLIMIT_FSIZE", FILE_BYTES),
        ("RLIMIT_NOFILE", OPEN_FILES),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_AS", MEMORY_BYTES),
    ]
    if runs_code and sys.platform != "linux":
        limits.append(("RLIMIT_NPROC", 0))  # on Linux it would forbid threads too, and seccomp does it better
    standing = []
    for name, most in limits:
        kind = getattr(resource, name, None)
        if kind is None:
            continue
        hard = resource.getrlimit(kind)[1]
        value = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(kind, (value, value))
        except (ValueError, OSError):
            continue  # macOS has no limit on address space
        standing.append(name.removeprefix("RLIMIT_").lower())
    return [f"limits: {', '.join(standing)}"] if standing else []


def _drop_capabilities(libc: ctypes.CDLL) -> bool:
    header = struct.pack("Ii", 0x20080522, 0)
    return bool(libc.capset(header, b"\0" * 24) == 0)


def _restrict_files(libc: ctypes.CDLL, folder: str, runs_code: bool) -> int:
    """Landlock: the version of its interface in force, or 0."""
    abi = int(libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint(1)))
    if abi < 1:
        return 0
    handled = (
        _FIRST_ABI | (_REFER if abi >= 2 else 0) | (_TRUNCATE if abi >= 3 else 0) | (_IOCTL_DEV if abi >= 5 else 0)
    )
    connects = 0b11 if abi >= 4 else 0  # bind and connect, TCP
    scoped = 0b11 if abi >= 6 else 0  # abstract sockets and signals to outside
    rules = struct.pack("QQQ", handled, connects, scoped)[: 24 if abi >= 6 else 16 if abi >= 4 else 8]
    ruleset = int(libc.syscall(_CREATE_RULESET, rules, ctypes.c_size_t(len(rules)), ctypes.c_uint(0)))
    if ruleset < 0:
        return 0
    _allow(libc, ruleset, folder, _WORK & handled)
    _allow(libc, ruleset, "/dev/null", _READ_FILE | _WRITE_FILE)
    for path in SYSTEM_FILES:
        _allow(libc, ruleset, path, _READ_FILE)
    for path in (*SYSTEM_FOLDERS, *(python_folders() if runs_code else ())):
        _allow(libc, ruleset, path, _LOOK if runs_code else _LOOK | _EXECUTE)
    done = libc.syscall(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint(0))
    os.close(ruleset)
    return abi if done == 0 else 0


def python_folders() -> tuple[str, ...]:
    """Where the interpreter keeps its library and the shared objects that this needs."""
    library = os.path.dirname(os.__file__)  # noqa: PTH120 - pathlib takes 10 ms to load, for every command
    return (library, os.path.join(sys.base_prefix, "lib"), os.path.join(sys.base_exec_prefix, "lib"))  # noqa: PTH118


def _allow(libc: ctypes.CDLL, ruleset: int, path: str, access: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # this system does not have it
    libc.syscall(
        _ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(1), struct.pack("=Qi", access, opened), ctypes.c_uint(0)
    )
    os.close(opened)


def _filter_calls(libc: ctypes.CDLL, runs_code: bool) -> bool:
    known = _ARCHITECTURES.get(os.uname().machine)
    if known is None or sys.maxsize < 2**32:
        return False
    program = build_filter(*known, pid=os.getpid(), runs_code=runs_code)
    lines = ctypes.create_string_buffer(program, len(program))
    header = struct.pack("HP", len(program) // 8, ctypes.addressof(lines))
    return bool(libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(2), header, *_zeros(2)) == 0)


def build_filter(architecture: int, numbers: dict[str, int], *, pid: int, runs_code: bool) -> bytes:
    """The seccomp program: what is named is answered with "not permitted", everything else goes through."""
    lines = [
        _line(_LOAD, 4),
        _line(_EQUAL, architecture, 1, 0),
        _line(_RETURN, _KILL),
        _line(_LOAD, 0),
        _line(_AT_LEAST, 0x40000000, 0, 1),  # the x32 twin of every call
        _line(_RETURN, _ERRNO | _ENOSYS),
    ]
    denied = [name for name in numbers if name not in (*_CHECKED, *_BY_DESCRIPTOR, *_FROM_FOLDER)]
    if runs_code:
        denied += ["execve", "execveat", *(name for name in _BY_DESCRIPTOR if name in numbers)]
    for name in denied:
        lines += [_line(_EQUAL, numbers[name], 0, 1), _line(_RETURN, _ERRNO | _EPERM)]
    lines += [
        _line(_EQUAL, numbers["clone3"], 0, 1),
        _line(_RETURN, _ERRNO | _ENOSYS),
    ]  # so that libc falls back to clone
    for name, test, value in (
        ("socketpair", _EQUAL, _AF_UNIX),
        ("clone", _ANY_BIT, _CLONE_THREAD),  # threads, no processes
        ("kill", _EQUAL, pid),
        ("tgkill", _EQUAL, pid),
        ("prlimit64", _EQUAL, 0),
        *((name, _EQUAL, _AT_FDCWD) for name in _FROM_FOLDER if runs_code),
    ):
        lines += [
            _line(_EQUAL, numbers[name], 0, 4),
            _line(_LOAD, 16),  # the first argument's low half
            _line(test, value, 1, 0),
            _line(_RETURN, _ERRNO | _EPERM),
            _line(_RETURN, _ALLOW),
        ]
    return b"".join([*lines, _line(_RETURN, _ALLOW)])


def _line(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
