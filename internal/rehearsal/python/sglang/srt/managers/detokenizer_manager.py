"""The detokenizer: turns tokens into text on their way back to main."""

import logging
import os
import signal

from sglang.srt.utils.common import begin_child, configure_logger, get_exception_traceback
from sglang_rehearsal import cue, ipc, pause

logger = logging.getLogger(__name__)


class DetokenizerManager:
    def event_loop(self, mailbox):
        while True:
            message = mailbox.get()
            cue("detokenize")
            ipc.send("tokenizer", message)


def run_detokenizer_process(server_args, port_args):
    pause(3)
    parent = begin_child("sglang::detokenizer")
    configure_logger(server_args)
    ipc.join(port_args.token)
    try:
        DetokenizerManager().event_loop(ipc.Mailbox("detokenizer"))
    except Exception:
        logger.error("DetokenizerManager hit an exception: %s", get_exception_traceback())
        os.kill(parent, signal.SIGQUIT)
