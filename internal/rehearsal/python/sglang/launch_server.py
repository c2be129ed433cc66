"""Launch the inference server: python -m sglang.launch_server ARGS."""

import os
import sys


def run_server(argv):
    from sglang.srt.utils.common import kill_process_tree

    try:
        # Imported here: every spawned process imports this file as its main module.
        from sglang.srt.server_args import prepare_server_args

        server_args = prepare_server_args(argv)

        from sglang.srt.entrypoints.http_server import launch_server

        launch_server(server_args)
    finally:
        kill_process_tree(os.getpid(), include_parent=False)


if __name__ == "__main__":
    run_server(sys.argv[1:])
