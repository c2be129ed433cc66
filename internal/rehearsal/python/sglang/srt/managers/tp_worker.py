"""The part of a scheduler that holds the model."""

from sglang.srt.model_executor.model_runner import ModelRunner


class TpModelWorker:
    def __init__(self, server_args, gpu_id, tp_rank, dp_rank):
        self.server_args = server_args
        self._init_model_runner(gpu_id, tp_rank, dp_rank)

    def _init_model_runner(self, gpu_id, tp_rank, dp_rank):
        self._model_runner = ModelRunner(self.server_args, gpu_id, tp_rank, dp_rank)

    @property
    def model_runner(self):
        return self._model_runner
