# SPDX-License-Identifier: Apache-2.0

"""Refuse the system calls with which a child process could affect other processes or the host.

The kernel filters the system calls (seccomp, see ``Documentation/userspace-api/seccomp_filter.rst``
of Linux), also for ``root`` and on kernels without Landlock. The filter refuses what no child
needs: other processes, memory that outlives the child or escapes its limit of memory, changes of
the mode and the owner of files, and other sockets than TCP and UDP. Which files and ports a child
can reach is not decided here; see ``walls``.

The filter is for Linux on x86-64 and ARM64. On other processors, nothing is refused, and the checks
of a service warn. The filter is written here, since no maintained library on PyPI writes filters.
"""

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

# Name of a system call -> its numbers on x86-64 and ARM64. ARM64 lacks some old calls.
_REFUSED: Mapping[str, tuple[int, int | None]] = {
    # Processes. Threads are allowed; see ``_filter``.
    "fork": (57, None),
    "vfork": (58, None),
    "execve": (59, 221),
    "execveat": (322, 281),
    # Signals; the child may send some to itself.
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_send_signal": (424, 424),
    # The memory, the files and the scheduling of other processes.
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # Limits; ``prlimit64`` is allowed to read the child's own.
    "setrlimit": (160, 164),
    # The mode, the owner, the times and the attributes of files.
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "mknod": (133, None),
    "mknodat": (259, 33),
    # Memory that the limit of memory does not count, and that may outlive the child.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semctl": (66, 191),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgctl": (71, 187),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "vmsplice": (278, 75),
    "splice": (275, 76),
    "tee": (276, 77),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # What the kernel limits for all processes of a user together.
    "timer_create": (222, 107),
    "epoll_create": (213, None),
    "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21),
    # Descriptors for other processes. Whoever closes the last descriptor of a file has to free it.
    "sendmsg": (46, 211),
    "sendmmsg": (307, 269),
    # Parts of the kernel that act for a process, and that this filter could not see.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    "io_submit": (209, 2),
    "userfaultfd": (323, 282),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "modify_ldt": (154, None),
    # Landlock restricts the child before this filter does. Further rules would take memory that no
    # limit counts.
    "landlock_create_ruleset": (444, 444),
    "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446),
    # Connections from others, and what happens in directories.
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
    # The host itself, which root may change.
    "acct": (163, 89),
    "adjtimex": (159, 171),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "init_module": (175, 105),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    # Namespaces and mounts.
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
}
# Some uses of these system calls are refused; see ``_filter``.
_CHECKED: Mapping[str, tuple[int, int]] = {
    "clone": (56, 220),
    "clone3": (435, 435),
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "fcntl": (72, 25),
    "ioctl": (16, 29),
    "prctl": (157, 167),
    "prlimit64": (302, 261),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "sendto": (44, 206),
    "setsockopt": (54, 208),
}
# Newer system calls have the same numbers on both processors. Python needs none of them. Those of
# x86-64's other interface, x32, have larger numbers.
_FIRST_NEW = 448
# Processor -> its number in the kernel (``linux/audit.h``), and its place in the tables.
_PROCESSORS = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}

# What the filter reads (``linux/seccomp.h``): the offset of each value. An argument has 64 bits, of
# which the lower ones come first.
_NUMBER, _PROCESSOR, _ARGUMENTS = 0, 4, 16
_SIZE, _HALF = 8, 4
# Instructions of the filter (``linux/bpf_common.h``).
_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_IS, _IS_AT_LEAST, _HAS_BIT = 0x15, 0x35, 0x45
# What the filter returns.
_ALLOWED, _WITH_ERROR = 0x7FFF0000, 0x00050000

_SET_SECCOMP, _FILTER_MODE = 22, 2
_THREAD, _NAMESPACES = 0x00010000, 0x7E020000
_UNIX, _INET, _INET6 = 1, 2, 10
_STREAM, _DATAGRAM, _KIND_OF_SOCKET = 1, 2, 0xF
_TCP, _UDP = 6, 17
# A message with this bit connects without ``connect``.
_FAST_OPEN = 0x20000000
# Options of sockets, by their level. TCP Fast Open connects without ``connect``, and TCP_ULP makes
# another kind of socket. With SO_LINGER, whoever closes a socket may wait. SO_ZEROCOPY keeps memory
# that the limit of memory does not count.
_REFUSED_OPTIONS = {_TCP: (30, 31), 1: (13, 60)}
# F_SETOWN and F_SETOWN_EX let the kernel signal another process. F_SETLEASE and F_NOTIFY delay
# others, and watch them. F_SETPIPE_SZ uses up the pages for pipes of the user.
_REFUSED_COMMANDS = (8, 15, 1024, 1026, 1031)
# The child must not survive its supervisor, become readable for others, or bind other processes to
# its processor (PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SCHED_CORE).
_REFUSED_CONTROLS = (1, 4, 62)
# What Python uses for files, terminals and sockets: TCGETS, TCGETS2, TIOCGWINSZ, FIONREAD, FIONBIO,
# FIONCLEX and FIOCLEX. Others change file systems, terminals and the network.
_ALLOWED_CONTROLS = (0x5401, 0x802C542A, 0x5413, 0x541B, 0x5421, 0x5450, 0x5451)
# See capset(2).
_CAPABILITIES_VERSION = 0x20080522


class _Instruction(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    )


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_uint16), ("instructions", ctypes.POINTER(_Instruction)))


class _Step(NamedTuple):
    """An instruction. A comparison skips ``if_true`` or ``if_false`` of the next steps."""

    code: int
    value: int
    if_true: int = 0
    if_false: int = 0


_Steps = Sequence[_Step]
_ALLOW: _Steps = [_Step(_RETURN, _ALLOWED)]
_REFUSE: _Steps = [_Step(_RETURN, _WITH_ERROR | errno.EPERM)]
# glibc then uses an older system call instead.
_LACK: _Steps = [_Step(_RETURN, _WITH_ERROR | errno.ENOSYS)]


def are_refused() -> bool:
    """Return whether the filter is for this processor."""
    # A 32-bit Python makes other system calls.
    return platform.machine() in _PROCESSORS and sys.maxsize > 2**32


def restrict(library: ctypes.CDLL) -> None:
    """Refuse system calls to this process for ever, and give up the rights of ``root``.

    This process must have set ``no_new_privs``, and must have one thread.

    :param library: the C library, with the error numbers of its functions.
    :raises OSError: if the kernel refuses the filter.
    """
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_VERSION, 0)
    if library.capset(header, (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "the capabilities cannot be given up")
    if not are_refused():
        return
    number, place = _PROCESSORS[platform.machine()]
    steps = [*_filter(number, place, os.getpid())]
    instructions = (_Instruction * len(steps))(
        *(_Instruction(step.code, step.if_true, step.if_false, step.value) for step in steps)
    )
    program = _Program(len(steps), instructions)
    if library.prctl(_SET_SECCOMP, _FILTER_MODE, ctypes.byref(program), 0, 0):
        raise OSError(ctypes.get_errno(), "the kernel refuses the filter of system calls")


def _filter(processor: int, place: int, process: int) -> Iterator[_Step]:
    """Yield the steps of the filter.

    :param processor: the number of the processor in the kernel.
    :param place: the place of the processor's numbers in the tables.
    :param process: the id of the process, which may send signals to itself.
    """
    numbers = {name: found[place] for name, found in _CHECKED.items()}
    yield _load(_PROCESSOR)
    yield from _unless(_IS, processor, _REFUSE)
    yield _load(_NUMBER)
    yield from _if(_IS_AT_LEAST, _FIRST_NEW, _LACK)
    for found in _REFUSED.values():
        refused = found[place]
        if refused is not None:
            yield from _if(_IS, refused, _REFUSE)
    # The flags of a new process are behind a pointer in clone3, so nothing can check them.
    yield from _if(_IS, numbers["clone3"], _LACK)
    only_threads = [_argument(0), *_unless(_HAS_BIT, _THREAD, _REFUSE)]
    only_threads += [*_if(_HAS_BIT, _NAMESPACES, _REFUSE), *_ALLOW]
    yield from _if(_IS, numbers["clone"], only_threads)
    # The id of a process with one thread is also the id of the thread.
    for name in ("kill", "tkill", "tgkill"):
        yield from _if(_IS, numbers[name], _only(0, [process]))
    yield from _if(_IS, numbers["fcntl"], _without(1, _REFUSED_COMMANDS))
    yield from _if(_IS, numbers["prctl"], _without(0, _REFUSED_CONTROLS))
    yield from _if(_IS, numbers["ioctl"], _only(1, _ALLOWED_CONTROLS))
    yield from _if(_IS, numbers["prlimit64"], _reads_own_limit())
    yield from _if(_IS, numbers["socket"], _tcp_or_udp())
    pair = [_argument(0), *_unless(_IS, _UNIX, _REFUSE), _argument(1), _Step(_AND, _KIND_OF_SOCKET)]
    # A datagram socket could send to any other Unix socket.
    yield from _if(_IS, numbers["socketpair"], [*pair, *_unless(_IS, _STREAM, _REFUSE), *_ALLOW])
    usual = [_argument(3), *_if(_HAS_BIT, _FAST_OPEN, _REFUSE), *_ALLOW]
    yield from _if(_IS, numbers["sendto"], usual)
    options = [_argument(1)]
    for level, refused_options in _REFUSED_OPTIONS.items():
        options += _if(_IS, level, _without(2, refused_options))
    yield from _if(_IS, numbers["setsockopt"], [*options, *_ALLOW])
    yield from _ALLOW


def _without(argument: int, values: Sequence[int]) -> Iterator[_Step]:
    """Yield the steps that refuse some values of an argument."""
    yield _argument(argument)
    for value in values:
        yield from _if(_IS, value, _REFUSE)
    yield from _ALLOW


def _only(argument: int, values: Sequence[int]) -> Iterator[_Step]:
    """Yield the steps that allow some values of an argument only."""
    yield _argument(argument)
    for value in values:
        yield from _if(_IS, value, _ALLOW)
    yield from _REFUSE


def _reads_own_limit() -> Iterator[_Step]:
    """Yield the steps that allow ``prlimit64`` without a new limit, for this process."""
    yield _argument(0)
    yield from _unless(_IS, 0, _REFUSE)
    for half in (0, _HALF):
        yield _argument(2, half)
        yield from _unless(_IS, 0, _REFUSE)
    yield from _ALLOW


def _tcp_or_udp() -> Iterator[_Step]:
    """Yield the steps that allow ``socket`` for TCP and UDP."""
    yield _argument(0)
    yield from _unless(_IS, _INET, _unless(_IS, _INET6, _REFUSE))
    yield _argument(1)
    yield _Step(_AND, _KIND_OF_SOCKET)
    for kind, protocol in ((_STREAM, _TCP), (_DATAGRAM, _UDP)):
        usual = [_argument(2), *_unless(_IS, 0, _unless(_IS, protocol, _REFUSE)), *_ALLOW]
        yield from _if(_IS, kind, usual)
    yield from _REFUSE


def _load(offset: int) -> _Step:
    """Return the step that reads the value with which the next steps compare."""
    return _Step(_LOAD, offset)


def _argument(number: int, half: int = 0) -> _Step:
    """Return the step that reads one half of an argument of the system call."""
    return _load(_ARGUMENTS + _SIZE * number + half)


def _if(comparison: int, value: int, then: Iterator[_Step] | _Steps) -> _Steps:
    """Return a comparison, and the steps that follow if it holds."""
    steps = [*then]
    return [_Step(comparison, value, if_false=len(steps)), *steps]


def _unless(comparison: int, value: int, then: Iterator[_Step] | _Steps) -> _Steps:
    """Return a comparison, and the steps that follow if it does not hold."""
    steps = [*then]
    return [_Step(comparison, value, if_true=len(steps)), *steps]
