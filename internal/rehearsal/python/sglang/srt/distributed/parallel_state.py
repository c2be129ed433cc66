"""The group of ranks that compute together, and its collectives."""

import socket
import time

from sglang_rehearsal import cue, gpu, hang, ipc, scaled


class Group:
    """Ranks 0 to size-1 of one tensor-parallel group.

    Rank 0 keeps the store, an abstract socket, to which the others connect.
    As with NCCL, a collective with a rank that died waits for ever.
    """

    def __init__(self, name, rank, size):
        self.rank, self.size, self.peers = rank, size, []
        self.address = ipc.address("store-" + name)

    def init(self):
        cue("init")
        if self.rank == 0:
            self._accept()
        else:
            self._connect()
        self.barrier()

    def barrier(self):
        """Return when every rank has come here."""
        if self.rank == 0:
            for peer in self.peers:
                _receive(peer)
            for peer in self.peers:
                _send(peer)
        else:
            _send(self.peers[0])
            _receive(self.peers[0])

    def _accept(self):
        store = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        store.bind(self.address)
        store.listen(self.size)
        self.peers = [store.accept()[0] for _ in range(self.size - 1)]
        store.close()

    def _connect(self):
        store = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        deadline = time.monotonic() + scaled(1800)
        while True:
            try:
                store.connect(self.address)
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
        self.peers = [store]


def _send(peer):
    try:
        peer.sendall(b".")
    except OSError:
        hang()


def _receive(peer):
    """A rank that waits for another spins: full utilisation, no memory traffic."""
    peer.settimeout(max(0.1, scaled(10)))
    try:
        try:
            got = peer.recv(1)
        except socket.timeout:
            gpu.note(util=100, memutil=0, power=97_000)
            peer.settimeout(None)
            got = peer.recv(1)
    except OSError:
        got = b""
    if not got:
        hang()
