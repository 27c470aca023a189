"""A load for a server of HTTP: python http_load.py PORT REQUESTS CONNECTIONS DEPTH PATH...

REQUESTS in all, over CONNECTIONS, each of which sends DEPTH requests at a time and then reads their answers; PATHs in turn. A
connection that the server closes is opened anew.
"""

from __future__ import annotations

import itertools
import re
import socket
import sys
import time

LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
CHUNKED = re.compile(rb"(?i)\r\ntransfer-encoding: *chunked")


class Connection:
    """One connection, opened when it first sends."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.socket: socket.socket | None = None
        self.buffer = b""

    def send(self, data: bytes) -> None:
        if self.socket is None:
            self.socket = socket.create_connection(("127.0.0.1", self.port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.buffer = b""
        self.socket.sendall(data)

    def more(self) -> None:
        assert self.socket is not None
        data = self.socket.recv(1 << 18)
        if not data:
            sys.exit("the server closed a connection before its answer was whole")
        self.buffer += data

    def take(self, count: int) -> int:
        """Read so many bytes; returns: how many"""
        while len(self.buffer) < count:
            self.more()
        self.buffer = self.buffer[count:]
        return count

    def chunk(self) -> int:
        """Read the line before a chunk: its length."""
        while (end := self.buffer.find(b"\r\n")) < 0:
            self.more()
        length = int(self.buffer[:end], 16)
        self.buffer = self.buffer[end + 2 :]
        return length

    def answer(self) -> None:
        """Read one answer; ends the program if it is no success."""
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            self.more()
        head, self.buffer = self.buffer[: end + 2], self.buffer[end + 4 :]
        if not head.split(b" ", 2)[1].startswith(b"2"):
            sys.exit(f"the server answered {head.splitlines()[0].decode(errors='replace')}")
        if CHUNKED.search(head):
            while self.take(self.chunk() + 2) > 2:
                pass
        else:
            match = LENGTH.search(head)
            self.take(int(match[1]) if match else 0)
        if b"onnection: close" in head and self.socket is not None:
            self.socket.close()
            self.socket = None


def main(port: int, requests: int, connections: int, depth: int, paths: list[str]) -> None:
    lines = "GET {} HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\nUser-Agent: load\r\n\r\n"
    turn = itertools.cycle([lines.format(path).encode() for path in paths])
    clients = [Connection(port) for _ in range(connections)]
    done, began = 0, time.monotonic()
    while done < requests:
        for one in clients:
            one.send(b"".join(next(turn) for _ in range(depth)))
        for one in clients:
            for _ in range(depth):
                one.answer()
        done += depth * connections
    print(f"{done / (time.monotonic() - began):.1f} requests per second")


if __name__ == "__main__":
    port, requests, connections, depth = map(int, sys.argv[1:5])
    main(port, requests, connections, depth, sys.argv[5:])
