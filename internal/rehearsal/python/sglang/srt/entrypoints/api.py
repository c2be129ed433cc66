"""The endpoints, with the codes that the real server gives at each time of its life."""

import json
import logging
import os
import socket
import socketserver
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler

from sglang.srt.managers.tokenizer_manager import STARTING, UNHEALTHY, UP
from sglang.version import __version__
from sglang_rehearsal import scaled
from sglang_rehearsal.words import TOKENS

OPEN_PATHS = ("/health", "/health_generate", "/metrics")  # no API key needed


logger = logging.getLogger(__name__)


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """No HTTPServer: that would ask the name service for its own name."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """A client that goes away is no news."""


def make_server(args, scheduler_info, manager):
    """A bound server, or OSError. Until here every connection is refused."""
    Server.address_family = socket.AF_INET6 if ":" in args.host else socket.AF_INET
    server = Server((args.host, args.port), Handler)
    server.args, server.scheduler_info, server.manager = args, scheduler_info, manager
    return server


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "uvicorn"
    sys_version = ""

    def do_GET(self):
        self._route({
            "/health": self.health, "/health_generate": self.health, "/ping": self.health,
            "/model_info": self.model_info, "/get_model_info": self.model_info,
            "/server_info": self.server_info, "/get_server_info": self.server_info,
            "/v1/models": self.models, "/metrics": self.metrics,
        })

    def do_POST(self):
        with self.server.manager.answering():
            self._route({"/generate": self.generate, "/v1/completions": self.completions,
                         "/v1/chat/completions": self.chat, "/flush_cache": self.flush_cache})

    def _route(self, table):
        self.manager = self.server.manager
        path = self.path.partition("?")[0]
        if path not in table:
            return self.answer(404, {"detail": "Not Found"})
        key = self.server.args.api_key
        if key and path not in OPEN_PATHS and self.headers.get("Authorization") != "Bearer " + key:
            return self.answer(401, {"error": "Unauthorized"})
        try:
            table[path]()
        except (ValueError, KeyError, TypeError, AttributeError) as e:
            self.answer(400, {"error": {"message": "cannot read the request: %s" % e}})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    # Health: 503 while starting, then a token must come through all processes.

    def health(self):
        manager = self.manager
        if manager.gracefully_exit:
            logger.info("Health check request received during shutdown. Returning 503.")
            return self.answer(503)
        if manager.server_status == STARTING:
            return self.answer(503)
        limit = float(os.environ.get("SGLANG_HEALTH_CHECK_TIMEOUT") or 20)
        try:
            for _ in manager.generate("health", 1, timeout=max(0.3, scaled(limit))):
                pass
        except TimeoutError:
            self._unhealthy(limit)
            return self.answer(503)
        manager.server_status = UP
        self.answer(200)

    def _unhealthy(self, limit):
        self.manager.server_status = UNHEALTHY
        logger.error(
            "Health check failed. Server couldn't get a response from detokenizer for last %d seconds. "
            "tic start time: %s. last_heartbeat time: %s", limit, time.strftime("%H:%M:%S"), time.strftime("%H:%M:%S"))

    # Information. server_info asks the scheduler, and so waits for ever if that is gone.

    def model_info(self):
        args = self.server.args
        self.answer(200, {"model_path": args.model_path, "tokenizer_path": args.tokenizer_path,
                          "is_generation": True, "weight_version": args.weight_version})

    def models(self):
        name = self.server.args.served_model_name
        self.answer(200, {"object": "list", "data": [
            {"id": name, "object": "model", "created": int(time.time()), "owned_by": "sglang", "root": name,
             "max_model_len": 202752}]})

    def server_info(self):
        for _ in self.manager.generate("server info", 1):
            pass
        info = dict(vars(self.server.args), **self.server.scheduler_info)
        self.answer(200, dict(info, version=__version__, internal_states=[{}]))

    def metrics(self):
        if not self.server.args.enable_metrics:
            return self.answer(404, {"detail": "Not Found"})
        text = "# TYPE sglang:num_running_reqs gauge\nsglang:num_running_reqs %d\n" % len(self.manager.rid_to_state)
        self.answer(200, text.encode(), "text/plain")

    def flush_cache(self):
        """400 while requests run, as the real one: then nothing was flushed."""
        if self.manager.rid_to_state:
            logger.warning("Cache not flushed because there are pending requests. #queue-req: 0, #running-req: %d",
                           len(self.manager.rid_to_state))
            return self.answer(400, b"Flush cache failed.\n", "text/plain")
        logger.info("Cache flushed successfully!")
        self.answer(200, b"Cache flushed.\n", "text/plain")

    # Generation.

    def generate(self):
        request = self.body()
        params = request.get("sampling_params") or {}
        if isinstance(request.get("text"), list):
            return self._batch(request["text"], self.length(params.get("max_new_tokens", 128)))
        prompt = str(request.get("text", ""))
        words, begin = self.manager.generate(prompt, self.length(params.get("max_new_tokens", 128))), time.monotonic()
        if request.get("stream"):
            return self.stream(self._native(prompt, so_far, begin) for so_far in _growing(words))
        self.answer(200, self._native(prompt, list(words), begin))

    def _batch(self, prompts, length):
        """Several prompts at a time, and their answers in the same order."""
        begin = time.monotonic()
        with ThreadPoolExecutor(max(1, len(prompts))) as pool:
            said = list(pool.map(lambda p: list(self.manager.generate(str(p), length)), prompts))
        self.answer(200, [self._native(str(p), words, begin) for p, words in zip(prompts, said)])

    def _native(self, prompt, words, begin):
        ids = [TOKENS[w] for w in words]
        return {"text": " " + " ".join(words), "output_ids": ids, "meta_info": {
            "id": "%x" % id(words), "finish_reason": {"type": "length", "length": len(words)},
            "prompt_tokens": len(prompt.split()), "completion_tokens": len(words), "cached_tokens": 0,
            "weight_version": "default", "e2e_latency": time.monotonic() - begin,
            "output_token_logprobs": [[-0.25, i, None] for i in ids]}}

    def completions(self):
        request = self.body()
        self._openai(request, str(request.get("prompt", "")), "text_completion", lambda text: {"text": text})

    def chat(self):
        request = self.body()
        prompt = " ".join(str(m.get("content", "")) for m in request["messages"])
        kind = "chat.completion.chunk" if request.get("stream") else "chat.completion"
        field = "delta" if request.get("stream") else "message"
        self._openai(request, prompt, kind, lambda text: {field: {"role": "assistant", "content": text}})

    def _openai(self, request, prompt, kind, choice):
        words = self.manager.generate(prompt, self.length(request.get("max_tokens", 128)))

        def document(text, reason, count=0):
            return {"id": "cmpl-%d" % time.monotonic_ns(), "object": kind, "created": int(time.time()),
                    "model": self.server.args.served_model_name,
                    "choices": [dict(choice(text), index=0, finish_reason=reason)],
                    "usage": {"prompt_tokens": len(prompt.split()), "completion_tokens": count,
                              "total_tokens": len(prompt.split()) + count}}

        if request.get("stream"):
            return self.stream(document(" " + w, None) for w in words)
        said = list(words)
        self.answer(200, document(" " + " ".join(said), "length", len(said)))

    # Reading and writing.

    def body(self):
        size = int(self.headers.get("Content-Length") or 0)
        if size > 1 << 24:
            raise ValueError("the body is larger than 16 MiB")
        request = json.loads(self.rfile.read(size) or b"{}")
        if not isinstance(request, dict):
            raise ValueError("the body is no JSON object")
        return request

    def length(self, value):
        value = int(value)
        if not 0 < value <= 202752:
            raise ValueError("max_new_tokens must be within 1 and 202752")
        return value

    def answer(self, code, content=b"", kind="application/json"):
        if not isinstance(content, bytes):
            content = json.dumps(content, default=str).encode()
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def stream(self, documents):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        for document in documents:
            self.wfile.write(b"data: " + json.dumps(document).encode() + b"\n\n")
        self.wfile.write(b"data: [DONE]\n\n")

    def log_request(self, code="-", size="-"):
        """uvicorn's access log, on standard output."""
        level, status = "INFO", "%s %s" % (int(code), self.responses.get(code, ("",))[0])
        if sys.stdout.isatty():
            level, status = "\x1b[32mINFO\x1b[0m", "\x1b[%dm%s\x1b[0m" % (32 if code < 400 else 31, status)
        sys.stdout.write('[%s] %s:     %s:%d - "%s" %s\n' % (
            time.strftime("%Y-%m-%d %H:%M:%S"), level, self.client_address[0], self.client_address[1],
            self.requestline, status))
        sys.stdout.flush()

    def log_message(self, *args):
        """Everything else that http.server would log is none of uvicorn's business."""


def _growing(words):
    said = []
    for word in words:
        said.append(word)
        yield said
