#!/usr/bin/env python3
"""Prints what a server with --log-requests prints, as fast as its output is taken.

    bench/requestlog.py MEGABYTES BYTES [PACE]

With PACE it has no more to say than so many megabytes a second. Lines are of BYTES
each, one write a line as Python's logging does it, and begin with a start of one
rank that gets ready. The seconds from the first byte to the last go to the file
that $TOOK names.
"""
import os
import sys
import time

import serverlog


def lines(length):
    for text in serverlog.start(0):
        yield text
    second = 300
    while True:
        head = f"[{serverlog.at(second)}] Receive: obj=GenerateReqInput(rid='{second:032x}', text='"
        tail = "', sampling_params={'temperature': 0.7, 'max_new_tokens': 1024}, stream=True)"
        yield head + "a prompt, long as people write them " * (length // 36) + tail
        second += 1


def main():
    size, length = int(sys.argv[1]) * 1_000_000, int(sys.argv[2])
    pace = float(sys.argv[3]) * 1e6 if len(sys.argv) > 3 else 0
    made, encoded = 0, []
    for line in lines(length):
        encoded.append(line.encode() + b"\n")
        made += len(encoded[-1])
        if made >= size:
            break
    begun, printed = time.monotonic(), 0
    for line in encoded:
        while pace and printed > (time.monotonic() - begun) * pace:
            time.sleep(0.002)
        printed += len(line)
        while line:
            line = line[os.write(1, line) :]
    with open(os.environ["TOOK"], "w") as took:
        took.write(str(time.monotonic() - begun))


if __name__ == "__main__":
    main()
