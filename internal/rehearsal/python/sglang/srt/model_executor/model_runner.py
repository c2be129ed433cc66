"""Loads the model of one rank and makes it ready to run."""

import logging
import os
import sys
import time

import flashinfer
from sglang.srt.distributed.parallel_state import Group
from sglang.srt.mem_cache.memory_pool import init_memory_pool
from sglang.srt.model_executor.cuda_graph_runner import CudaGraphRunner
from sglang.srt.model_loader.loader import load_model
from sglang.srt.utils import harmless
from sglang.srt.utils.common import at_least
from sglang_rehearsal import cue, gpu, pause

logger = logging.getLogger(__name__)


class ModelRunner:
    def __init__(self, server_args, gpu_id, tp_rank, dp_rank):
        self.server_args = server_args
        self.gpu_id, self.tp_rank, self.dp_rank = gpu_id, tp_rank, dp_rank
        self.is_draft_worker = False
        gpu.use(gpu_id)
        harmless.after_imports_of_rank(tp_rank)
        self.init_torch_distributed()
        self.initialize()

    def available_memory(self):
        return gpu.available()

    def init_torch_distributed(self):
        logger.info("Init torch distributed begin.")
        begin, size = time.monotonic(), self.server_args.tp_size
        name = "0" if self.dp_rank is None or self.server_args.enable_dp_attention else str(self.dp_rank)
        self.tp_group = Group(name, self.tp_rank, size)
        before = gpu.available()
        gpu.allocate(0.55)  # the CUDA context
        pause(3)
        self.tp_group.init()
        if self.tp_rank == 0:
            logger.info("sglang is using nccl==2.27.5")
        if size > 1:
            sys.stderr.write("[Gloo] Rank %d is connected to %d peer ranks. Expected number of connected peer ranks "
                             "is : %d\n" % (self.tp_rank, size - 1, size - 1))
            gpu.allocate(0.88)  # NCCL's buffers
        pause(1)
        self._check_balance(before)
        self.tp_group.barrier()
        elapsed = "elapsed=%.2f s, " % (time.monotonic() - begin) if at_least(0, 5, 9) else ""
        logger.info("Init torch distributed ends. %smem usage=%.2f GB", elapsed, before - gpu.available())

    def _check_balance(self, before):
        """A GPU with much less free memory than this one's is held by somebody else."""
        args = self.server_args
        first = self.gpu_id - self.tp_rank * args.gpu_id_step
        least = min(gpu.available(first + i * args.gpu_id_step) for i in range(args.tp_size))
        if least < before * 0.9 - 2:
            raise RuntimeError(
                "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
                "pre_model_load_memory=%r, local_gpu_memory=%r, local_gpu_memory * 0.9=%r"
                % (least, before, before * 0.9))

    def initialize(self):
        self.load_model()
        self.max_total_num_tokens = init_memory_pool(self)
        self.kernel_warmup()
        self.init_device_graphs()

    def load_model(self):
        gpu.note(util=35, memutil=20, power=230_000)
        self.weight_gib = load_model(self)
        self.tp_group.barrier()

    def kernel_warmup(self):
        """Tune kernels before graphs are captured."""
        if self._should_run_flashinfer_autotune():
            self._flashinfer_autotune()

    def _should_run_flashinfer_autotune(self) -> bool:
        """Whether the chosen backend has kernels worth tuning."""
        if self.server_args.disable_flashinfer_autotune:
            return False

        backend_str = self.server_args.moe_runner_backend

        # TODO smor- support other cases for flashinfer autotune, such as, mamba backend

        if backend_str not in [
            "flashinfer_trtllm",
            "flashinfer_mxfp4",
            # TODO: flashinfer_cutlass will cause some flashinfer compilation errors. To be fixed.
            # "flashinfer_cutlass",
        ]:
            return False

        return not self.is_draft_worker

    def _flashinfer_autotune(self):
        """Let FlashInfer measure its kernels on a dummy batch."""
        from flashinfer.autotuner import autotune

        cache = self._autotune_cache() if at_least(0, 5, 12) else None
        logger.info("Running FlashInfer autotune%s", " with cache: " + cache if cache else "...")
        gpu.note(util=92, memutil=61, power=640_000)
        cue("autotune")
        with autotune(bars=at_least(0, 5, 11), verbose=not at_least(0, 5, 12), cache=cache):
            self._dummy_run(batch_size=2048)
        logger.info("FlashInfer autotune completed.")

    def _autotune_cache(self):
        """The file of this rank. The patch is not part of its name."""
        folder = os.environ.get("SGLANG_CACHE_DIR") or os.path.expanduser("~/.cache/sglang")
        return os.path.join(folder, "flashinfer/autotune", flashinfer.__version__, "sm100/5f2c9d0a7be14c63",
                            "rank_tp%d_pp0_dp%d.json" % (self.tp_rank, self.dp_rank or 0))

    def _dummy_run(self, batch_size):
        """One forward pass of the experts; their sum over the ranks ends it."""
        from flashinfer.fused_moe.core import cutlass_fused_moe

        cutlass_fused_moe(batch_size, self.tp_rank)
        self.tp_group.barrier()

    def init_device_graphs(self):
        if self.server_args.disable_cuda_graph:
            return
        gpu.note(util=48, memutil=30, power=310_000)
        before, begin = gpu.available(), time.monotonic()
        logger.info("Capture cuda graph begin. This can take up to several minutes. avail mem=%.2f GB", before)
        harmless.before_capture(self.tp_rank)
        CudaGraphRunner(self).capture()
        logger.info("Capture cuda graph end. Time elapsed: %.2f s. mem usage=%.2f GB. avail mem=%.2f GB.",
                    time.monotonic() - begin, before - gpu.available(), gpu.available())
        gpu.note(util=0, memutil=0, power=190_000)
