"""How fast the stand-in server is: a known function of its arguments.

A tuner that is rehearsed on it can be told right from wrong, because the best
arguments are known. SGLAUNCH_REHEARSAL_BENCH adds what spoils a measurement, as
words with commas:

  noise=0.01    each run differs by so much (standard deviation, relative)
  launch=0.01   so does each start of the server, all runs on it alike
  drift=-0.002  every start is so much faster than the one before
  seed=7        of the noise; the same seed and the same runs give the same figures
  fail=0.1      share of the requests that fail
  all-failed    every request fails, and the client's exit status is 0 all the same
  stall         the client stops at a third of its requests, for ever
  saturated     the client keeps a whole core busy and measures itself
  no-record     the client ends without writing its line
"""

import os
import random

PEAK = 6000.0  # tokens per second of the default arguments at any load
HALF = 24.0  # requests at a time that give half of the peak

CHUNKED_PREFILL = {2048: 0.93, 4096: 0.97, 8192: 1.00, 16384: 1.00, 32768: 0.98}
MOE_BACKEND = {"flashinfer_cutlass": 1.00, "flashinfer_trtllm": 1.08, "triton": 0.86, "cutlass": 0.97, "auto": 0.95}


def settings():
    """SGLAUNCH_REHEARSAL_BENCH as a dictionary; a word without a value is "1"."""
    words = [w.strip() for w in os.environ.get("SGLAUNCH_REHEARSAL_BENCH", "").split(",") if w.strip()]
    return dict((w.partition("=")[0], w.partition("=")[2] or "1") for w in words)


def tokens_per_second(args, concurrency):
    """Output tokens per second without any noise; args is what /get_server_info says."""
    peak = PEAK * MOE_BACKEND.get(args["moe_runner_backend"], 0.9)
    peak *= CHUNKED_PREFILL.get(args["chunked_prefill_size"], 0.95)
    peak *= 1 + 0.5 * (args["mem_fraction_static"] - 0.85)  # a larger pool retracts less
    running = min(concurrency, args["max_running_requests"] or 2048)
    return peak * running / (running + HALF)


def measured(args, concurrency, run):
    """The same as one run sees it, on the server's newest start."""
    s = settings()
    start = newest_start()
    seed = s.get("seed", "0")
    launch = random.Random("%s launch %d" % (seed, start)).gauss(0, float(s.get("launch", 0)))
    noise = random.Random("%s run %d %d" % (seed, start, run)).gauss(0, float(s.get("noise", 0)))
    return tokens_per_second(args, concurrency) * (1 + launch + noise) * (1 + float(s.get("drift", 0))) ** (start - 1)


def newest_start():
    """Which start of the stage this is, from 1."""
    return _lines("starts") or 1


def count_run():
    """Number this run of a client, from 1."""
    folder = os.environ.get("SGLAUNCH_REHEARSAL_STATE")
    if not folder:
        return 1
    with open(os.path.join(folder, "runs"), "ab") as f:
        f.write(b"%d\n" % os.getpid())
    return _lines("runs")


def _lines(name):
    try:
        with open(os.path.join(os.environ.get("SGLAUNCH_REHEARSAL_STATE", ""), name), "rb") as f:
            return len(f.readlines())
    except OSError:
        return 0
