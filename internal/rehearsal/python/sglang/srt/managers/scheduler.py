"""The scheduler: one process for every rank."""

import logging
import os
import signal

from sglang.srt.utils.common import begin_child, configure_logger, get_exception_traceback
from sglang_rehearsal import cue, ipc, pause, take_stage

logger = logging.getLogger(__name__)

IDLE_POLL = 3600  # seconds; a message ends the wait


class Scheduler:
    """Builds the model's worker, then works on requests (rank 0 of its group)."""

    def __init__(self, server_args, gpu_id, tp_rank, dp_rank):
        self.server_args, self.gpu_id, self.tp_rank, self.dp_rank = server_args, gpu_id, tp_rank, dp_rank
        self.running = {}  # request id: [tokens left, tokens before]
        self.steps = 0
        self.init_model_worker()

    def init_model_worker(self):
        from sglang.srt.managers.tp_worker import TpModelWorker

        self.tp_worker = TpModelWorker(self.server_args, self.gpu_id, self.tp_rank, self.dp_rank)
        runner = self.tp_worker.model_runner
        self.max_total_num_tokens = runner.max_total_num_tokens
        if self.tp_rank == 0:
            logger.info(
                "max_total_num_tokens=%d, chunked_prefill_size=%d, max_prefill_tokens=%d, max_running_requests=%d, "
                "context_len=%d, available_gpu_mem=%.2f GB",
                self.max_total_num_tokens, self.server_args.chunked_prefill_size, 16384, 2048, 202752,
                runner.available_memory())

    def event_loop(self, mailbox):
        while True:
            message = mailbox.get(0 if self.running else IDLE_POLL)
            if message is None:
                self.run_batch()
            elif message["kind"] == "generate":
                self.prefill(message)
            elif message["kind"] == "ready":
                self.serve()

    def serve(self):
        """Main has said that it is ready: what happens in service may happen now."""
        from sglang_rehearsal import gpu

        gpu.note(util=0, memutil=0, power=190_000)
        cue("serving")

    def prefill(self, request):
        if self.tp_rank != 0:
            return
        cue("forward")
        logger.info(
            "Prefill batch, #new-seq: 1, #new-token: %d, #cached-token: 0, token usage: %.2f, #running-req: %d, "
            "#queue-req: 0, input throughput (token/s): %.2f, cuda graph: False",
            request["prompt_tokens"], self.usage(), len(self.running), 1840.25)
        pause(0.4)
        self.running[request["rid"]] = [request["max_new_tokens"], request["prompt_tokens"]]
        cue("batch", len(self.running))

    def run_batch(self):
        """One decode step for everything that runs."""
        pause(0.02)
        self.steps += 1
        for rid in list(self.running):
            self.running[rid][0] -= 1
            finished = self.running[rid][0] <= 0
            ipc.send("detokenizer", {"rid": rid, "finished": finished,
                                     "corrupt": "SGLAUNCH_REHEARSAL_CORRUPT" in os.environ})
            if finished:
                del self.running[rid]
        if self.steps % self.server_args.decode_log_interval == 0:
            logger.info(
                "Decode batch, #running-req: %d, #token: %d, token usage: %.2f, cuda graph: True, "
                "gen throughput (token/s): %.2f, #queue-req: 0",
                len(self.running), 40 * max(1, len(self.running)), self.usage(), 48.7 * max(1, len(self.running)))

    def usage(self):
        return min(1.0, sum(n for _, n in self.running.values()) / self.max_total_num_tokens)


def rank_prefix(server_args, tp_rank, dp_rank):
    """Each part only if there is more than one of it: " DP1 TP3", " TP0", ""."""
    parts = ""
    if dp_rank is not None:
        parts += " DP%d" % dp_rank
    if server_args.tp_size > 1:
        parts += " TP%d" % tp_rank
    if server_args.ep_size > 1:
        parts += " EP%d" % (tp_rank * server_args.ep_size // server_args.tp_size)
    return parts


def run_scheduler_process(server_args, port_args, gpu_id, tp_rank, dp_rank, pipe_writer):
    pause(4)  # the imports: until they are done the title is the interpreter's
    prefix = rank_prefix(server_args, tp_rank, dp_rank)
    parent = begin_child("sglang::scheduler" + prefix.replace(" ", "_"))
    take_stage((gpu_id - server_args.base_gpu_id) // server_args.gpu_id_step, server_args.ranks())
    configure_logger(server_args, prefix)
    ipc.join(port_args.token)
    try:
        mailbox = ipc.Mailbox("scheduler-%d" % gpu_id)
        scheduler = Scheduler(server_args, gpu_id, tp_rank, dp_rank)
        pipe_writer.send({"status": "ready", "max_total_num_tokens": scheduler.max_total_num_tokens,
                          "max_req_input_len": 202746})
        scheduler.event_loop(mailbox)
    except Exception:
        logger.error("Scheduler hit an exception: %s", get_exception_traceback())
        os.kill(parent, signal.SIGQUIT)
