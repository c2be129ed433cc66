"""What happens behind the stage: time, misfortunes, GPUs, titles and bars.

The packages sglang and flashinfer beside this one play the server. Where they
would compute they call pause(); where something may go wrong they call cue(),
which does nothing unless a scenario says so.

  SGLAUNCH_REHEARSAL         names of scenarios.json, with commas; empty is a healthy server
  SGLAUNCH_REHEARSAL_STARTS  the scenarios apply to so many first starts only; 0 is every start
  SGLAUNCH_REHEARSAL_SPEED   time runs so many times faster; 1 is the real thing
  SGLAUNCH_REHEARSAL_STATE   folder in which starts are counted
  SGLAUNCH_REHEARSAL_NVML    the board: file that says what GPUs there are
  SGLAUNCH_REHEARSAL_BENCH   what spoils the measurements of sglang.bench_serving; see throughput.py
"""

from sglang_rehearsal.clock import hang, pause, scaled
from sglang_rehearsal.scenario import cue, take_stage

__all__ = ["cue", "hang", "pause", "scaled", "take_stage"]
