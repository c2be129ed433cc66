"""Sizes and allocates the KV cache."""

import logging

from sglang.srt.utils.common import at_least
from sglang_rehearsal import cue, gpu, pause

logger = logging.getLogger(__name__)

TOKEN_BYTES = 78 * 656  # of one token in all layers


def init_memory_pool(runner):
    """Returns the number of tokens that fit."""
    args = runner.server_args
    if runner.tp_rank == 0:
        logger.info("Using KV cache dtype: %s", "torch.float8_e4m3fn")
    pause(0.6)
    cue("pool")
    size = gpu.available() - gpu.total() * (1 - args.mem_fraction_static)
    if size <= 0:
        raise RuntimeError("Not enough memory. Please try to increase --mem-fraction-static. "
                           "Current value: self.server_args.mem_fraction_static=%s" % args.mem_fraction_static)
    runner.tp_group.barrier()
    gpu.allocate(size)
    tokens = int(size * gpu.GIB / TOKEN_BYTES)
    dtype = "dtype: torch.float8_e4m3fn, " if at_least(0, 5, 13) else ""
    logger.info("KV Cache is allocated. %s#tokens: %d, KV size: %.2f GB", dtype, tokens, size)
    pause(0.4)
    logger.info("Memory pool end. avail mem=%.2f GB", gpu.available())
    return tokens
