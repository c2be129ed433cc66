"""Main's side of a request: hand it to a scheduler, wait for its tokens."""

import contextlib
import logging
import os
import queue
import signal
import threading
import time

from sglang.srt.utils.common import at_least, kill_process_tree
from sglang_rehearsal import ipc, pause, scaled
from sglang_rehearsal.words import Speaker

logger = logging.getLogger(__name__)

STARTING, UP, UNHEALTHY = "Starting", "Up", "UnHealthy"


class TokenizerManager:
    def __init__(self, server_args):
        self.server_args = server_args
        self.server_status = STARTING
        self.rid_to_state = {}  # request id: queue of messages
        self.unwritten = set()  # threads whose client has not got all of its answer
        self.gracefully_exit = False
        self.loop_created = False  # made at the first request, and with it the signal handlers
        self.last_receive = 0.0
        self.mailbox = ipc.Mailbox("tokenizer")
        threading.Thread(target=self.handle_loop, daemon=True).start()

    def handle_loop(self):
        while True:
            message = self.mailbox.get()
            self.last_receive = time.monotonic()
            state = self.rid_to_state.get(message["rid"])
            if state:
                state.put(message)

    def generate(self, prompt, max_new_tokens, timeout=None):
        """Yields words as they come. Raises TimeoutError if a token takes too long."""
        self.auto_create_handle_loop()
        rid, state = os.urandom(16).hex(), queue.Queue()
        self.rid_to_state[rid] = state
        speaker = Speaker(prompt)
        ipc.send("controller" if self.server_args.dp_size > 1 else "scheduler-%d" % self.server_args.base_gpu_id,
                 {"kind": "generate", "rid": rid, "max_new_tokens": max_new_tokens,
                  "prompt_tokens": max(1, len(prompt.split()))})
        try:
            finished = False
            while not finished:
                try:
                    message = state.get(timeout=timeout)
                except queue.Empty:
                    raise TimeoutError("no token within %.1f s" % timeout)
                finished = message["finished"]
                yield speaker.word(message.get("corrupt", False))
        finally:
            del self.rid_to_state[rid]

    @contextlib.contextmanager
    def answering(self):
        """Has a drain wait until the answer is written, not only known."""
        self.unwritten.add(threading.get_ident())
        try:
            yield
        finally:
            self.unwritten.discard(threading.get_ident())

    def auto_create_handle_loop(self):
        if not self.loop_created:
            self.loop_created = True
            threading.Thread(target=self.sigterm_watchdog, daemon=True).start()

    def sigterm_handler(self):
        logger.warning("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
        self.gracefully_exit = True

    def running_phase_sigquit_handler(self):
        logger.error("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
        kill_process_tree(os.getpid())

    def sigterm_watchdog(self):
        """Waits for SIGTERM, drains without any limit, and ends the whole tree including itself."""
        while not self.gracefully_exit:
            pause(5)
        while True:
            if self.server_status == UNHEALTHY:
                logger.error("Signal SIGTERM received while health check failed. Force exiting.")
                break
            if os.environ.get("SGL_FORCE_SHUTDOWN", "").lower() in ("1", "true"):
                logger.error("Signal SIGTERM received while force shutdown flag set. Force exiting.")
                break
            left = list(self.rid_to_state)
            logger.info("Gracefully exiting... Remaining number of requests %d. Remaining requests remaining_rids=%s.",
                        len(left), left)
            if not left and not self.unwritten:
                break
            pause(5)
        kill_process_tree(os.getpid())

    def watch_subprocesses(self, processes):
        """From 0.5.10: somebody notices when a child dies without a word."""
        if at_least(0, 5, 10):
            threading.Thread(target=_watch, args=(processes,), daemon=True).start()


def _watch(processes):
    while True:
        time.sleep(max(0.05, scaled(1)))
        for name, proc in processes.items():
            if proc.exitcode is not None:
                logger.error("Subprocess %s (pid=%d) crashed with exit code %d. Triggering SIGQUIT for cleanup...",
                             name, proc.pid, proc.exitcode)
                os.kill(os.getpid(), signal.SIGQUIT)
                return
