"""What can go wrong. Each act takes its own dictionary from scenarios.json."""

import os
import signal
import subprocess
import sys

from sglang_rehearsal import clock


def perform(act):
    clock.pause(act.get("wait", 0))
    _ACTS[act["do"]](act)


def _hang(act):
    """A collective that never ends: full utilisation, no memory traffic."""
    from sglang_rehearsal import gpu

    gpu.note(util=100, memutil=0, power=97_000)
    clock.hang()


def _kill(act):
    os.kill(os.getpid(), getattr(signal, act["signal"]))
    clock.hang()  # the signal may take a moment


def _pause(act):
    clock.pause(act["seconds"])


def _oom(act):
    from sglang_rehearsal import gpu

    raise gpu.out_of_memory(act["gib"])


def _cuda_error(act):
    from sglang_rehearsal import gpu

    raise gpu.error(act["text"])


def _lose_gpu(act):
    from sglang_rehearsal import gpu

    gpu.lose()
    raise gpu.error("CUDA error: unspecified launch failure")


def _raise(act):
    """An exception of any class, by its full name, as a traceback shows it."""
    module, _, name = act["type"].rpartition(".")
    kind = type(name, (RuntimeError,), {"__module__": module or "builtins", "__qualname__": name})
    raise kind(act["text"])


def _missing_import(act):
    raise ImportError(act["text"])


def _ask(act):
    """A question on the terminal. Without one the answer is the end of the file."""
    answer = input(act["text"])
    if answer.strip().lower() not in ("y", "yes"):
        raise ValueError("The repository contains custom code which must be executed to correctly load the model.")


def _watchdog(act):
    """A forward batch takes longer than --watchdog-timeout: the scheduler ends its parent."""
    import logging

    clock.pause(300)
    logging.getLogger("sglang.srt.managers.scheduler").error(
        "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)")
    clock.pause(5)
    os.kill(os.getppid(), signal.SIGQUIT)
    clock.hang()


def _nccl_timeout(act):
    """The watchdog thread of NCCL gives up after ten minutes and aborts its process."""
    from sglang_rehearsal import gpu

    gpu.note(util=100, memutil=0, power=97_000)
    clock.pause(600)
    text = ("[rank%d]:[E1130 08:12:44.105514218 ProcessGroupNCCL.cpp:685] [Rank %d] Watchdog caught collective operation "
            "timeout: WorkNCCL(SeqNum=11, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600012 "
            "milliseconds before timing out.\nterminate called after throwing an instance of 'c10::DistBackendError'\n")
    sys.stderr.write(text % (gpu.index(), gpu.index()))
    os.abort()


def _bad_argument(act):
    sys.stderr.write("usage: launch_server.py [-h] --model-path MODEL_PATH ...\n")
    sys.stderr.write("launch_server.py: error: %s\n" % act["text"])
    raise SystemExit(2)


def _address_in_use(act):
    import errno

    raise OSError(errno.EADDRINUSE, "Address already in use")


def _compile(act):
    """A just-in-time build: silence here, busy compilers below."""
    subprocess.run([program("ninja"), "%.2f" % clock.scaled(act["seconds"])], check=True,
                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def _build_fails(act):
    """Let the next build of this process fail; flashinfer asks for it."""
    os.environ["SGLAUNCH_REHEARSAL_BUILD"] = "fail"


def _stray(act):
    """A process that left the session, ignores SIGTERM and holds GPU memory.

    Two forks and an interpreter of its own between them, so that nothing ties
    it to this process but its cgroup and its environment.
    """
    from sglang_rehearsal import gpu

    subprocess.run([sys.executable, "-m", "sglang_rehearsal.stray", str(gpu.index()), str(act["gib"])], check=True)


def _drain_by_somebody(act):
    """SIGTERM to the launched process, from elsewhere."""
    from sglang_rehearsal import ipc

    os.kill(ipc.main_pid(), signal.SIGTERM)


def _repeat_itself(act):
    """From now on answer with one word for ever."""
    os.environ["SGLAUNCH_REHEARSAL_CORRUPT"] = "1"


def program(name):
    """Path of a program in the environment's bin folder."""
    return os.path.join(os.path.dirname(sys.executable), name)


_ACTS = {
    "ask": _ask, "watchdog": _watchdog, "nccl-timeout": _nccl_timeout, "cuda-error": _cuda_error, "lose-gpu": _lose_gpu,
    "hang": _hang, "kill": _kill, "pause": _pause, "oom": _oom, "raise": _raise,
    "missing-import": _missing_import, "bad-argument": _bad_argument, "address-in-use": _address_in_use,
    "compile": _compile, "build-fails": _build_fails, "stray": _stray,
    "drain": _drain_by_somebody, "repeat-itself": _repeat_itself,
}
