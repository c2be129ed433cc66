"""The sglang command: sglang serve ARGS, sglang version."""

import sys


def main():
    command, argv = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if command == "version":
        from sglang.version import __version__

        print("sglang version: %s" % __version__)
        return 0
    if command != "serve":
        print("usage: sglang {serve,version} ...", file=sys.stderr)
        return 2
    if argv and not argv[0].startswith("-"):  # the model may come first, without its flag
        argv[:1] = ["--model-path", argv[0]]

    from sglang.launch_server import run_server

    run_server(argv)
    return 0
