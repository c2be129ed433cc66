"""Loads the weights: construct the model, then fill it shard by shard."""

import logging
import time

from sglang.srt.model_loader.weight_utils import safetensors_weights_iterator, shard_files
from sglang.srt.utils.common import at_least
from sglang_rehearsal import cue, gpu, pause

logger = logging.getLogger(__name__)

LOAD_SECONDS = 24
MODEL_GIB = 432.0  # of weights in all ranks together


def load_model(runner):
    """Returns the GiB that the weights of this rank take."""
    args, rank, begin = runner.server_args, runner.tp_rank, time.monotonic()
    before = gpu.available()
    logger.info("Load weight begin. avail mem=%.2f GB", before)
    if rank == 0:
        logger.info("Detected nvfp4 checkpoint. Please note that the format is experimental and subject to change.")
    _construct(args, rank)

    for _ in safetensors_weights_iterator(shard_files(args.model_path), rank, LOAD_SECONDS):
        pass
    _process_weights(rank)

    used = before - gpu.available()
    parts = ["type=GlmMoeDsaForCausalLM"]
    if at_least(0, 5, 9):
        parts.insert(0, "elapsed=%.2f s" % (time.monotonic() - begin))
    parts.append("quant=modelopt_fp4" if at_least(0, 5, 10) else "dtype=torch.bfloat16")
    logger.info("Load weight end. %s, avail mem=%.2f GB, mem usage=%.2f GB.", ", ".join(parts), gpu.available(), used)
    return used


def _construct(args, rank):
    """The parameters are allocated before the first shard is read: memory jumps here, then stays."""
    share = min(MODEL_GIB / args.tp_size, gpu.total() * 0.6)
    pause(0.5)
    gpu.allocate(share / 2)
    cue("construct")
    pause(0.5)
    gpu.allocate(share / 2)


def _process_weights(rank):
    """Repacking after the last shard: silent, different on each rank, memory up and down."""
    cue("post-process")
    gpu.allocate(1.5)
    pause(1.5 + 0.25 * (rank * 5 % 8))
    gpu.allocate(-1.5)
