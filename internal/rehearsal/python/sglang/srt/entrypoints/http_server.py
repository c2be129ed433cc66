"""The HTTP side of main: bind, warm up, serve."""

import logging
import os
import signal
import sys
import threading
import time

from sglang.srt.entrypoints.engine import launch_subprocesses
from sglang.srt.utils import harmless
from sglang_rehearsal import cue, ipc, pause

logger = logging.getLogger(__name__)


def launch_server(server_args):
    """Returns when uvicorn would; a drained server does not return at all."""
    pause(2)
    cue("import")
    harmless.after_imports_of_main()
    port_args, scheduler_info, processes = launch_subprocesses(server_args)

    # Imported only now: http.server costs more than everything else in main.
    from sglang.srt.entrypoints.api import make_server
    from sglang.srt.managers.tokenizer_manager import TokenizerManager

    manager = TokenizerManager(server_args)
    pause(0.5)
    _uvicorn("Started server process [%d]" % os.getpid())
    _uvicorn("Waiting for application startup.")
    _uvicorn("Application startup complete.")
    try:
        cue("bind")
        server = make_server(server_args, scheduler_info, manager)
    except OSError as e:
        _uvicorn("[Errno %d] error while attempting to bind on address ('%s', %d): %s"
                 % (e.errno, server_args.host, server_args.port, os.strerror(e.errno).lower()), "ERROR")
        _uvicorn("Waiting for application shutdown.")
        _uvicorn("Application shutdown complete.")
        raise SystemExit(1)
    _uvicorn("Uvicorn running on http://%s:%d (Press CTRL+C to quit)" % server.server_address[:2])
    manager.watch_subprocesses(processes)
    _serve(server, manager)


def _serve(server, manager):
    """Until uvicorn's own shutdown: a SIGTERM or SIGINT before any request was made."""
    stopping = threading.Event()
    _install_signal_handlers(manager, stopping.set)
    threading.Thread(target=_wait_and_warmup, args=(server, manager), daemon=True).start()
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    while not stopping.wait(3600):
        pass
    _uvicorn("Shutting down")
    _uvicorn("Waiting for application shutdown.")
    _uvicorn("Application shutdown complete.")
    _uvicorn("Finished server process [%d]" % os.getpid())
    server.server_close()


def _install_signal_handlers(manager, stop_serving):
    """uvicorn's handlers at first; the tokenizer manager's once its loop is made."""

    def terminate(signum, frame):
        if manager.loop_created and signum == signal.SIGTERM:
            manager.sigterm_handler()
        else:
            stop_serving()

    def sigquit(signum, frame):
        if manager.loop_created:
            manager.running_phase_sigquit_handler()
        else:
            launch_phase_sigquit(signum, frame)

    launch_phase_sigquit = signal.getsignal(signal.SIGQUIT)
    signal.signal(signal.SIGTERM, terminate)
    signal.signal(signal.SIGINT, terminate)
    signal.signal(signal.SIGQUIT, sigquit)


def _wait_and_warmup(server, manager):
    """Asks itself for the model, then for eight tokens, and says that it is ready."""
    from sglang.srt.managers.tokenizer_manager import UP
    from sglang.srt.utils.common import get_exception_traceback, kill_process_tree

    try:
        pause(1)
        _request(server, "GET", "/model_info")
        if not server.args.skip_server_warmup:
            _request(server, "POST", "/generate",
                     b'{"text": "The capital city of France is", "sampling_params": {"max_new_tokens": 8}}')
    except Exception:
        logger.error("Initialization failed. warmup error: %s", get_exception_traceback())
        kill_process_tree(os.getpid())
    manager.server_status = UP
    logger.info("The server is fired up and ready to roll!")
    for gpu in range(server.args.ranks()):
        ipc.send("scheduler-%d" % (server.args.base_gpu_id + gpu * server.args.gpu_id_step), {"kind": "ready"})


def _request(server, method, path, body=None):
    import http.client

    from sglang_rehearsal import scaled

    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(server.args.host, server.args.host)
    connection = http.client.HTTPConnection(host, server.server_address[1], timeout=max(1, scaled(600)))
    headers = {"Content-Type": "application/json"}
    if server.args.api_key:
        headers["Authorization"] = "Bearer " + server.args.api_key
    connection.request(method, path, body, headers)
    response = connection.getresponse()
    response.read()
    if response.status != 200:
        raise AssertionError("res=<Response [%d]>" % response.status)


def _uvicorn(message, level="INFO"):
    """One line of uvicorn's own logger: coloured if standard output is a terminal."""
    shown = level
    if sys.stdout.isatty():
        shown = "\x1b[%dm%s\x1b[0m" % (32 if level == "INFO" else 31, level)
    sys.stderr.write("[%s] %s:%s%s\n" % (time.strftime("%Y-%m-%d %H:%M:%S"), shown, " " * (9 - len(level)), message))
    sys.stderr.flush()
