"""Lines that look bad and mean nothing. The real server prints many of them.

They must never be taken for the cause of anything.
"""

import logging
import sys

from sglang.srt.utils.common import at_least

logger = logging.getLogger("sglang.srt")


def after_imports_of_main():
    if at_least(0, 5, 10):
        _raw("<frozen runpy>:88: UserWarning: 'python -m sglang.launch_server' is still supported, but "
             "'sglang serve' is the recommended entrypoint.")
    _raw("Failed to import pynvml with ModuleNotFoundError(\"No module named 'pynvml'\")")


def after_imports_of_rank(rank):
    logger.warning("Ignore import error when loading sglang.srt.models.mindspore: No module named 'mindspore'")
    if rank == 0:
        logger.info("MOE_RUNNER_BACKEND is not initialized, the backend will be automatically selected")


def before_capture(rank):
    if rank == 0:
        logger.warning("Using default MoE kernel config. Performance might be sub-optimal! Config file not found at "
                       "/opt/sglang/layers/moe/configs/E=256,N=256,device_name=NVIDIA_B200.json")


def _raw(text):
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
