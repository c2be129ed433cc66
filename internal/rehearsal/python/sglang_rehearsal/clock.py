"""Time on the stage: as long as the real thing takes, divided by the speed."""

import os
import signal
import time

# A process that hangs on purpose and that nobody ends leaves by itself after
# this many real seconds: a rehearsal must not stay on a machine for ever.
PATIENCE = 3600

# The same for a process that does its work, but whose end nobody sees to.
LIFETIME = 24 * 3600

_pace = 1.0


def speed():
    try:
        value = float(os.environ.get("SGLAUNCH_REHEARSAL_SPEED") or 1)
    except ValueError:
        value = 1.0
    return value if value > 0 else 1.0


def slow_down(factor):
    """From now on everything in this process takes so many times longer."""
    global _pace
    _pace = float(factor)


def scaled(seconds):
    """Real seconds that stand for so many seconds of a real launch."""
    return seconds * _pace / speed()


def pause(seconds):
    time.sleep(scaled(seconds))


def hang():
    """Never return. Signals are handled as ever."""
    time.sleep(PATIENCE)
    os._exit(70)


def begin_life():
    """Let the kernel end this process after its lifetime, come what may."""
    signal.alarm(LIFETIME)
