"""Which misfortunes this launch meets, and at which cue.

A scenario is a list of acts. An act waits at a cue ("at") for a rank ("rank",
absent: every rank; the last one where there are fewer) and a share of the work
done ("done", 0 to 1), then does what acts.py knows under its name ("do"), once.
With "above" it is for servers whose arguments are larger than that alone.
"""

import os

from sglang_rehearsal import acts, clock

_rank = None  # of this process; None in main, detokenizer and controller
_ranks = 1
_acts = None  # what may still happen here


def take_stage(rank, ranks):
    """Tell which of how many ranks this process plays. Called once, after the imports."""
    global _rank, _ranks
    _rank, _ranks = rank, ranks


def cue(at, done=1.0):
    """Do what the scenario has for this moment; usually nothing.

    Returns whether anything was done, if it returns at all.
    """
    global _acts
    if _acts is None:
        _acts = _load()
    due = [a for a in _acts if a["at"] == at and _is_mine(a) and done >= a.get("done", 0)]
    for act in due:
        _acts.remove(act)
        acts.perform(act)
    return bool(due)


def _is_mine(act):
    if "rank" in act and _rank != min(act["rank"], _ranks - 1):
        return False
    given = _arguments() if "above" in act else {}
    return all(given.get(name, 0) > value for name, value in act.get("above", {}).items())


def tell_arguments(args):
    """Let the processes of this start know its numbers, for acts that depend on them."""
    import json

    numbers = {k: v for k, v in vars(args).items() if isinstance(v, (int, float)) and not isinstance(v, bool)}
    os.environ["SGLAUNCH_REHEARSAL_ARGUMENTS"] = json.dumps(numbers)


def _arguments():
    import json

    return json.loads(os.environ.get("SGLAUNCH_REHEARSAL_ARGUMENTS") or "{}")


def _load():
    names = [n for n in os.environ.get("SGLAUNCH_REHEARSAL", "").split(",") if n and n != "healthy"]
    if not names or not _applies():
        return []
    import json

    with open(os.path.join(os.path.dirname(__file__), "scenarios.json"), encoding="utf-8") as f:
        known = {s["name"]: s for s in json.load(f)}
    found = []
    for name in names:
        if name not in known:
            raise SystemExit("rehearsal: cannot play %r: the scenarios are %s" % (name, ", ".join(known)))
        found += known[name].get("acts", [])
        if "pace" in known[name]:
            clock.slow_down(known[name]["pace"])
    return found


def _applies():
    """Whether the number of this start is within the scenario's."""
    limit = int(os.environ.get("SGLAUNCH_REHEARSAL_STARTS") or 0)
    return limit <= 0 or int(os.environ.get("SGLAUNCH_REHEARSAL_START") or 1) <= limit


def count_start():
    """Number this start. Called by main alone; its children inherit the number."""
    folder = os.environ.get("SGLAUNCH_REHEARSAL_STATE")
    if not folder:
        return
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "starts"), "ab") as f:
        f.write(b"%d\n" % os.getpid())
    with open(os.path.join(folder, "starts"), "rb") as f:
        os.environ["SGLAUNCH_REHEARSAL_START"] = str(len(f.readlines()))
