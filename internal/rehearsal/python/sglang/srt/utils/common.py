"""Logging, signals and the end of process trees."""

import logging
import os
import signal
import sys
import traceback

from sglang.version import __version__


def at_least(*release):
    """Whether the release played here is that one or later."""
    numbers = [int(n) for n in __version__.split(".") if n.isdigit()]
    return tuple(numbers) >= release


def configure_logger(server_args, prefix=""):
    """Lines as "[2026-02-26 05:20:04 TP7] message", on standard error."""
    form = "[%(asctime)s{0}] %(message)s".format(prefix)
    if os.environ.get("SGLANG_LOG_MS"):
        form = "[%(asctime)s.%(msecs)03d{0}] %(message)s".format(prefix)
    logging.basicConfig(level=getattr(logging, server_args.log_level.upper(), logging.INFO), format=form,
                        datefmt="%Y-%m-%d %H:%M:%S", force=True)


def get_exception_traceback():
    return "".join(traceback.format_exception(*sys.exc_info()))


def kill_process_tree(pid, include_parent=True):
    """SIGKILL to every descendant, and at last to the process itself."""
    for child in descendants(pid):
        _kill(child, signal.SIGKILL)
    if include_parent:
        _kill(pid, signal.SIGKILL)
        if pid == os.getpid():
            # PID 1 of a container does not die of its own SIGKILL.
            os._exit(0)


def descendants(pid):
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            children.setdefault(_parent_of(name), []).append(int(name))
    found, todo = [], [pid]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _parent_of(pid):
    try:
        with open("/proc/%s/stat" % pid, "rb") as f:
            return int(f.read().rpartition(b")")[2].split()[1])
    except OSError:
        return -1


def _kill(pid, sig):
    try:
        os.kill(pid, sig)
    except ProcessLookupError:
        pass


def no_core_dumps():
    """The server ends children by SIGQUIT and SIGSEGV; leave no core files about."""
    import resource

    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))


def begin_child(title):
    """What every child does after its imports, and not before: title, deathsig."""
    import faulthandler

    from sglang_rehearsal.clock import begin_life
    from sglang_rehearsal.title import die_with_parent, set_title

    begin_life()
    set_title(title)
    faulthandler.enable()
    die_with_parent()
    return os.getppid()
