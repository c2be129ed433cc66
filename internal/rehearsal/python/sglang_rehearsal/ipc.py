"""Messages between the processes of one server, in place of ZeroMQ.

Datagrams over abstract Unix sockets: no port, no file, and a message to a
process that is gone is lost without a word, which is what the real one does.
The names begin with a token that main makes and hands on in PortArgs.
"""

import pickle
import socket

_token = ""


def new_token():
    import os

    return "sglang-rehearsal-%d-%s" % (os.getpid(), os.urandom(6).hex())


def join(token):
    global _token
    _token = token


def main_pid():
    return int(_token.split("-")[2])


def address(name):
    return "\0%s-%s" % (_token, name)


class Mailbox:
    """Messages to one name. get() waits; with a timeout it may return None."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address(name))

    def get(self, timeout=None):
        self.socket.settimeout(timeout)
        try:
            return pickle.loads(self.socket.recv(1 << 20))
        except (socket.timeout, BlockingIOError):
            return None


def send(name, message):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        try:
            s.sendto(pickle.dumps(message), address(name))
        except (ConnectionRefusedError, FileNotFoundError):
            pass  # nobody there, and nobody told
