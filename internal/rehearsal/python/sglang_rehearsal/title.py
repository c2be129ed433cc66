"""Process titles, as the setproctitle package sets them on Linux.

It writes the title over the arguments and the environment of the process and
clears the rest, so /proc/PID/environ reads as zeroes from then on: a marker in
the environment can not be found again. SPT_NOENV=1 keeps the environment, and
cuts the title to the room of the arguments.
"""

import ctypes
import os

PR_SET_NAME, PR_SET_PDEATHSIG = 15, 1


def set_title(title):
    text = title.encode()
    start, end = _room()
    if end > start:
        _move_environment()
        ctypes.memset(start, 0, end - start)
        ctypes.memmove(start, text, min(len(text), end - start - 1))
    _prctl(PR_SET_NAME, ctypes.c_char_p(text[:15]))


def die_with_parent():
    """Have the kernel SIGKILL this process when its parent ends."""
    import signal

    _prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL))


def _room():
    """Where the title goes. Zero to zero if the kernel does not tell."""
    with open("/proc/self/stat", "rb") as f:
        fields = f.read().rpartition(b")")[2].split()
    if len(fields) < 49:
        return 0, 0
    arg_start, arg_end, _, env_end = [int(v) for v in fields[45:49]]
    return arg_start, arg_end if os.environ.get("SPT_NOENV") else env_end


def _move_environment():
    """Give the C library copies elsewhere: children must still inherit them."""
    for name, value in os.environ.items():
        os.putenv(name, value)


def _prctl(option, argument):
    ctypes.CDLL(None, use_errno=True).prctl(option, argument, 0, 0, 0)
