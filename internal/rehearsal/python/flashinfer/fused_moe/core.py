"""The fused mixture of experts of CUTLASS."""

import os

from flashinfer import autotuner
from flashinfer.jit.core import JitSpec


def get_cutlass_fused_moe_module(backend="100"):
    """Compiled at first use. Only a build that is to fail is worth the compilers' time here."""
    spec = JitSpec("fused_moe_" + backend)
    if os.environ.get("SGLAUNCH_REHEARSAL_BUILD"):
        spec.build_and_load()
    return spec


def cutlass_fused_moe(tokens, rank):
    get_cutlass_fused_moe_module()
    tuner = autotuner.AutoTuner.get()
    for op in ("trtllm::fused_moe::gemm1", "trtllm::fused_moe::gemm2"):
        tuner.choose_one(op, rank)
