"""The controller of data parallelism: parent of all schedulers if there are several groups."""

import logging
import multiprocessing as mp
import os
import signal
import threading
import time

from sglang.srt.managers.scheduler import run_scheduler_process
from sglang.srt.utils.common import begin_child, configure_logger, get_exception_traceback
from sglang_rehearsal import cue, ipc, pause

logger = logging.getLogger(__name__)


class DataParallelController:
    """Starts the groups and deals requests out to them in turn.

    It has no handler for SIGQUIT: if one of its schedulers fails, it dies of
    that signal, and main sees "Exit code: -3".
    """

    def __init__(self, server_args, port_args):
        self.server_args, self.port_args = server_args, port_args
        self.leaders = []  # GPU of rank 0 of each group
        self.turn = 0
        if server_args.enable_dp_attention:
            self.infos = self.launch_dp_attention_schedulers()
        else:
            self.infos = self.launch_dp_schedulers()

    def launch_dp_schedulers(self):
        args, ready, results = self.server_args, threading.Semaphore(0), []
        for dp_rank in range(args.dp_size):
            first = args.base_gpu_id + dp_rank * args.tp_size * args.gpu_id_step
            self.leaders.append(first)
            ranks = [(first + tp * args.gpu_id_step, tp, dp_rank) for tp in range(args.tp_size)]
            logger.info("Launch DP%d starting at GPU #%d.", dp_rank, first)
            threading.Thread(target=self.launch_group_thread, args=(ranks, ready, results), daemon=True).start()
        for _ in range(args.dp_size):
            ready.acquire()
        if len(results) < args.dp_size * args.tp_size:
            raise EOFError
        return results

    def launch_group_thread(self, ranks, ready, results):
        try:
            results += self.launch_tensor_parallel_group(ranks)
        except EOFError:
            pass
        ready.release()
        # The kernel takes the end of this thread for the death of the parent, and
        # would kill the schedulers that it started.
        while True:
            time.sleep(30 * 24 * 3600)

    def launch_dp_attention_schedulers(self):
        """All tensor-parallel ranks are one group, and carry the number of their data-parallel share."""
        args = self.server_args
        share = args.tp_size // args.dp_size
        ranks = [(args.base_gpu_id + tp * args.gpu_id_step, tp, tp // share) for tp in range(args.tp_size)]
        self.leaders = [ranks[0][0]]
        return self.launch_tensor_parallel_group(ranks)

    def launch_tensor_parallel_group(self, ranks):
        readers = []
        for gpu_id, tp_rank, dp_rank in ranks:
            reader, writer = mp.Pipe(duplex=False)
            mp.Process(target=run_scheduler_process,
                       args=(self.server_args, self.port_args, gpu_id, tp_rank, dp_rank, writer)).start()
            writer.close()
            readers.append(reader)
        return [reader.recv() for reader in readers]

    def event_loop(self, mailbox):
        while True:
            message = mailbox.get()
            if message["kind"] == "generate":
                ipc.send("scheduler-%d" % self.leaders[self.turn % len(self.leaders)], message)
                self.turn += 1


def run_data_parallel_controller_process(server_args, port_args, pipe_writer):
    pause(3)
    parent = begin_child("sglang::data_parallel_controller")
    configure_logger(server_args)
    ipc.join(port_args.token)
    try:
        mailbox = ipc.Mailbox("controller")
        cue("controller")
        controller = DataParallelController(server_args, port_args)
        pipe_writer.send(controller.infos[0])
        controller.event_loop(mailbox)
    except Exception:
        logger.error("DataParallelController hit an exception: %s", get_exception_traceback())
        os.kill(parent, signal.SIGQUIT)
