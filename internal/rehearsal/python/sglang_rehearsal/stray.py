"""python -m sglang_rehearsal.stray GPU GIB: start a process that stays behind.

It runs in a session of its own, under init, ignores what one can ignore, and
holds memory of a GPU until it is killed, or for ten minutes at most.
"""

import os
import signal
import sys
import time

from sglang_rehearsal import gpu


def main(index, gib):
    if os.fork():
        return  # whoever started us goes on
    os.setsid()
    if os.fork():
        os._exit(0)
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        signal.signal(s, signal.SIG_IGN)
    gpu.use(index)
    gpu.allocate(gib)
    time.sleep(600)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
