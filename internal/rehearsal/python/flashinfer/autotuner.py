"""Measures the tactics of an operation and keeps the fastest."""

import contextlib
import logging
import os
import sys

from sglang_rehearsal import cue, gpu, pause
from sglang_rehearsal.bar import Bar

PROFILES = 10
SECONDS = 5  # for one operation

# FlashInfer's own logger: no rank, another form of time, and its own handler.
logger = logging.getLogger("flashinfer.jit")
logger.propagate = False
_handler = logging.StreamHandler(sys.stderr)
_handler.setFormatter(logging.Formatter(
    "%(asctime)s - %(levelname)s - %(filename)s:%(lineno)d - flashinfer.jit: %(message)s"))
logger.addHandler(_handler)


class AutoTuner:
    _instance = None

    def __init__(self):
        self.is_tuning_mode = False
        self.bars = False
        self.tuned = []

    @classmethod
    def get(cls):
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def choose_one(self, custom_op, rank):
        if not self.is_tuning_mode:
            return
        profiles = range(PROFILES)
        for i in Bar(profiles, "[AutoTuner]: Tuning " + custom_op, unit="profile") if self.bars else profiles:
            cue("autotune-profile", i / PROFILES)
            gpu.allocate(0.7)  # workspaces, returned at once
            if rank == 0 and i == 3:
                logger.warning("[Autotuner]: Skipping tactic <MoERunner object> %d, due to failure while profiling: "
                               "[TensorRT-LLM][ERROR] Assertion failed: Failed to initialize cutlass TMA WS grouped gemm. "
                               "Error: Error Internal (cutlass_kernels/moe_gemm/launchers/moe_gemm_tma_ws_launcher.inl:508)", i)
            pause(SECONDS / PROFILES)
            gpu.allocate(-0.7)
        self.tuned.append(custom_op)


@contextlib.contextmanager
def autotune(bars=False, verbose=True, cache=None):
    """Tunes what runs inside. The cache is written only if nothing goes wrong there.

    Without SGLANG_CACHE_DIR nothing is written: a rehearsal stays out of the home folder.
    """
    tuner = AutoTuner.get()
    tuner.bars, tuner.is_tuning_mode, tuner.tuned = bars, True, []
    logger.setLevel(logging.INFO if verbose else logging.ERROR)
    logger.info("[Autotuner]: Autotuning process starts ...")
    try:
        yield
    finally:
        tuner.is_tuning_mode = False
        logger.info("[Autotuner]: Autotuning process ends")
    if cache and os.environ.get("SGLANG_CACHE_DIR"):
        _save(cache, tuner.tuned)


def _save(path, ops):
    import json

    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"('%s', 'MoERunner', 2048)" % op: ["MoERunner", 4] for op in ops}, f)
