#!/usr/bin/env python3
"""Writes a long log in the shape of a server's, for measurements.

    bench/serverlog.py KIND MEGABYTES

service: one start of eight ranks, then batches and requests, and now and then
         something else
starts:  starts of eight ranks with their bars, one after the other: every line
         means something
text:    lines of other programs, which no rule knows

and the log of a server behind what relays put before every line:

kubectl: the times of `kubectl logs --timestamps`
journal: the host and unit of `journalctl -u`
compose: the names of two services of `docker compose logs`, line by line in turn
cri:     the times and streams of a node's own files of a container
quoted:  a prefix that nobody knows

or whose lines read otherwise than they were printed:

coloured: in the colours of `docker compose logs` and of uvicorn on a terminal
docker:   in the JSON of Docker's own files of a container
"""
import itertools
import json
import sys


def at(second):
    return f"2026-02-19 {second // 3600 % 24:02d}:{second // 60 % 60:02d}:{second % 60:02d}"


def start(begin):
    yield f"[{at(begin)}] server_args=ServerArgs(model_path='/models/m', tp_size=8, attempt={begin})"
    steps = [
        "Init torch distributed begin.",
        "Init torch distributed ends. elapsed=4.10 s, mem usage=1.22 GB",
        "Load weight begin. avail mem=138.20 GB",
        "Load weight end. elapsed=14.58 s, type=M, avail mem=57.26 GB, mem usage=80.94 GB.",
        "KV Cache is allocated. #tokens: 454112, KV size: 29.72 GB",
        "Memory pool end. avail mem=25.26 GB",
        "Running FlashInfer autotune...",
        "FlashInfer autotune completed.",
        "Capture cuda graph begin. This can take up to several minutes. avail mem=24.10 GB",
        "Capture cuda graph end. Time elapsed: 7.10 s. mem usage=0.79 GB. avail mem=23.39 GB.",
    ]
    for n, text in enumerate(steps):
        for rank in range(8):
            yield f"[{at(begin + 10 * n)} TP{rank}] {text}"
        if text.startswith("Load weight begin"):
            yield "\r".join(bar("Loading safetensors checkpoint shards", i, 12) for i in range(13))
        if text.startswith("Capture cuda graph begin"):
            yield "\r".join(bar(f"Capturing batches (bs={8 * (12 - i)} avail_mem=24.01 GB)", i, 12) for i in range(13))
    yield f"[{at(begin + 200)}] INFO:     Uvicorn running on http://0.0.0.0:30000 (Press CTRL+C to quit)"
    yield f"[{at(begin + 201)}] The server is fired up and ready to roll!"


def bar(what, done, total):
    return f"{what}: {100 * done // total:3d}%|{'#' * done:<12}| {done}/{total} [00:{done:02d}<00:{total - done:02d},  1.00it/s]"


def service():
    yield from start(0)
    for second in itertools.count(300):
        t, i = at(second), second % 250
        yield f"[{t} TP0] Decode batch, #running-req: {i % 97}, #token: {3938 + i}, token usage: 0.{i % 90:02d}, cuda graph: True, gen throughput (token/s): {1500 + i}.34, #queue-req: 0"
        yield f"[{t} TP0] Prefill batch, #new-seq: 1, #new-token: {587 + i}, #cached-token: 0, token usage: 0.{i % 90:02d}, #running-req: {i % 97}, #queue-req: 0, input throughput (token/s): 2060.11"
        yield f'[{t}] INFO:     192.0.2.{i}:{50000 + i} - "POST /v1/chat/completions HTTP/1.1" 200 OK'
        if second % 83 == 0:
            yield f"[{t} TP{i % 8}] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_token_ratio: 0.0980 -> 0.9446"


def starts():
    for n in itertools.count():
        yield from start(300 * n)


def text():
    words = "the quick brown fox jumps over a lazy dog while its tokenizer reads shards from one node to another and waits".split()
    for n in itertools.count():
        tail = " ".join(words[(n * 7 + k * 3) % len(words)] for k in range(4 + n % 13))
        yield (
            tail,
            f"INFO {at(n)[5:]} [engine.py:{n % 997}] {tail}",
            f"[{at(n)} TP{n % 8}] {tail}",
            f"{n} {tail}, took {n % 89}.{n % 10} ms",
        )[n % 4]


def kubectl():
    for n, line in enumerate(service()):
        yield f"2026-02-19T{at(n // 3)[11:]}.{n * 7919 % 10**9:09d}Z {line}"


def journal():
    for n, line in enumerate(service()):
        yield f"Feb 19 {at(n // 3)[11:]} gpu7 sglang[1234]: {line}"


def cri():
    for n, line in enumerate(service()):
        yield f"2026-02-19T{at(n // 3)[11:]}.{n * 7919 % 10**9:09d}Z stdout F {line}"


def compose():
    for lines in zip(service(), service()):
        for service_number, line in enumerate(lines):
            yield f"sglang-{service_number}  | {line}"


def quoted():
    for line in service():
        yield f">> {line}"


def coloured():
    for line in service():
        if "INFO:" in line:
            line = line.replace("INFO:", "\033[32mINFO\033[0m:").replace('"POST /v1/chat/completions HTTP/1.1" 200 OK', '"\033[1mPOST /v1/chat/completions HTTP/1.1\033[0m" \033[32m200 OK\033[0m')
        yield f"\033[36msglang-1  |\033[0m {line}"


def docker():
    for n, line in enumerate(service()):
        yield json.dumps({"log": line + "\n", "stream": "stderr", "time": f"2026-02-19T{at(n // 3)[11:]}.{n * 7919 % 10**9:09d}Z"}, separators=(",", ":"))


KINDS = {kind.__name__: kind for kind in (service, starts, text, kubectl, journal, cri, compose, quoted, coloured, docker)}


def main():
    lines, size, written = KINDS[sys.argv[1]](), int(sys.argv[2]) * 1_000_000, 0
    while written < size:
        written += sys.stdout.write("\n".join(itertools.islice(lines, 1000)) + "\n")


if __name__ == "__main__":
    main()
