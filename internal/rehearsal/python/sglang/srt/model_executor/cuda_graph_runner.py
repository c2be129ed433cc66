"""Captures one graph for every batch size, the largest first."""

import logging

from sglang_rehearsal import cue, gpu, pause
from sglang_rehearsal.bar import Bar

logger = logging.getLogger(__name__)

GRAPH_MEMORY = 2.36  # GiB for all graphs; the first takes the most

CUDA_GRAPH_CAPTURE_FAILED_MSG = (
    "Possible solutions:\n"
    "1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"
    "2. set --cuda-graph-max-bs to a smaller value (e.g., 16)\n"
    "3. disable torch compile by not using --enable-torch-compile\n"
    "4. disable CUDA graph by --disable-cuda-graph. (Not recommended. Huge performance loss)\n"
    "Open an issue on GitHub https://github.com/sgl-project/sglang/issues/new/choose \n"
)


class CudaGraphRunner:
    def __init__(self, model_runner):
        self.model_runner = model_runner
        largest = model_runner.server_args.cuda_graph_max_bs or 256
        sizes = [1, 2, 4, 8, 12] + list(range(16, 257, 8))
        self.capture_bs = [bs for bs in sizes if bs <= largest]
        if model_runner.tp_rank == 0:
            logger.info("Capture cuda graph bs %s", self.capture_bs)

    def capture(self):
        try:
            self._capture_all()
        except RuntimeError as e:
            raise Exception("Capture cuda graph failed: %s\n%s" % (e, CUDA_GRAPH_CAPTURE_FAILED_MSG))

    def _capture_all(self):
        sizes = list(reversed(self.capture_bs))
        bar = Bar(sizes) if self.model_runner.tp_rank == 0 else sizes
        for i, bs in enumerate(bar):
            if bar is not sizes:
                bar.describe("Capturing batches (bs=%d avail_mem=%.2f GB)" % (bs, gpu.available()))
            self.capture_one_batch_size(i, len(sizes))
        if self.model_runner.tp_rank == 0:
            logger.info("Registering %d cuda graph addresses", 158 * len(sizes))

    def capture_one_batch_size(self, i, total):
        """The ranks go in step: each graph holds collectives."""
        cue("capture-step", i / total)
        self.model_runner.tp_group.barrier()
        pause(3 if i == 0 else 9 / total)
        gpu.allocate(GRAPH_MEMORY / 2 if i == 0 else GRAPH_MEMORY / 2 / max(1, total - 1))
