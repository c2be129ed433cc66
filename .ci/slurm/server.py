"""A server over several nodes, as far as a gang needs one: rank 0 waits for the
others, all say that they are ready, and whoever loses a peer fails as torch does.
In the first gang the last node's server dies."""
import argparse
import os
import signal
import socket
import sys
import time

p = argparse.ArgumentParser()
p.add_argument("--nnodes", type=int)
p.add_argument("--node-rank", type=int)
p.add_argument("--dist-init-addr")
args, _ = p.parse_known_args()
host, port = args.dist_init_addr.rsplit(":", 1)


def say(text):
    print(time.strftime("[%Y-%m-%d %H:%M:%S TP0] ") + text, flush=True)


def drain(*_):
    say("Gracefully exiting... Remaining number of requests 0. Remaining requests []")
    sys.exit(0)


signal.signal(signal.SIGTERM, drain)
say("Init torch distributed begin.")
if args.node_rank == 0:
    with socket.create_server((host, int(port))) as door:
        peer, _ = door.accept()
else:
    for _ in range(200):
        try:
            peer = socket.create_connection((host, int(port)))
            break
        except OSError:
            time.sleep(0.05)
say("Init torch distributed ends. mem usage=0.29 GB")
say("Load weight begin. avail mem=138.21 GB")
say("Load weight end. type=StandIn, dtype=torch.bfloat16, avail mem=120.10 GB, mem usage=18.11 GB.")
say("The server is fired up and ready to roll!")
if args.node_rank == args.nnodes - 1:
    try:
        with open(os.environ["GANG_FIRST"], "x"):
            os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        pass
peer.recv(1)
time.sleep(3)  # a collective notices a lost peer later than the signal arrives that ends both
say("Scheduler hit an exception: Traceback (most recent call last):")
print('  File "torch/distributed/distributed_c10d.py", line 2729, in all_reduce')
print("RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:525] Connection closed by peer [127.0.0.1]:41234", flush=True)
sys.exit(1)
