"""A load for a broker that speaks AMQP 0-9-1: python amqp_load.py PORT MESSAGES CONNECTIONS

Each connection has a queue of its own, sends messages of three sizes to it in batches, and receives and acknowledges them.
What is sent was made before the clock starts.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

SIZES = (60, 60, 600, 5000)
BATCH, BATCHES_AHEAD = 100, 4
METHOD, HEADER, BODY, HEARTBEAT, END = 1, 2, 3, 8, b"\xce"
START, START_OK, TUNE, TUNE_OK, OPEN, OPEN_OK = (10, 10), (10, 11), (10, 30), (10, 31), (10, 40), (10, 41)
CHANNEL_OPEN, CHANNEL_OPEN_OK = (20, 10), (20, 11)
DECLARE, DECLARE_OK = (50, 10), (50, 11)
CONSUME, CONSUME_OK, PUBLISH, DELIVER, ACK = (60, 20), (60, 21), (60, 40), (60, 60), (60, 80)
FRAME_BYTES = 131072


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + END


def method(channel: int, which: tuple[int, int], arguments: bytes) -> bytes:
    return frame(METHOD, channel, struct.pack(">HH", *which) + arguments)


def short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


def long(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


class Connection:
    """A connection with one channel, and a queue that it alone uses."""

    def __init__(self, port: int, number: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.incoming = self.socket.makefile("rb", buffering=1 << 18)
        queue = f"queue-{number}"
        self.socket.sendall(b"AMQP\0\0\x09\x01")
        self.expect(START)
        self.ask(0, START_OK, long(b"") + short("PLAIN") + long(b"\0guest\0guest") + short("en_US"), TUNE)
        self.socket.sendall(method(0, TUNE_OK, struct.pack(">HIH", 1, FRAME_BYTES, 0)))
        self.ask(0, OPEN, short("/") + short("") + b"\0", OPEN_OK)
        self.ask(1, CHANNEL_OPEN, short(""), CHANNEL_OPEN_OK)
        self.ask(1, DECLARE, b"\0\0" + short(queue) + b"\0" + long(b""), DECLARE_OK)
        self.ask(1, CONSUME, b"\0\0" + short(queue) + short("") + b"\0" + long(b""), CONSUME_OK)
        self.batch = b"".join(
            method(1, PUBLISH, b"\0\0" + short("") + short(queue) + b"\0")
            + frame(HEADER, 1, struct.pack(">HHQH", 60, 0, size, 0))
            + frame(BODY, 1, b"x" * size)
            for size in (SIZES[i % len(SIZES)] for i in range(BATCH))
        )

    def ask(self, channel: int, which: tuple[int, int], arguments: bytes, answer: tuple[int, int]) -> None:
        self.socket.sendall(method(channel, which, arguments))
        self.expect(answer)

    def expect(self, which: tuple[int, int]) -> bytes:
        """The arguments of the next method, which must be this one."""
        kind, payload = self.receive()
        if kind != METHOD or struct.unpack(">HH", payload[:4]) != which:
            sys.exit(f"the broker sent {payload[:80]!r} where method {which} was due")
        return payload[4:]

    def receive(self) -> tuple[int, bytes]:
        """The next frame that is no heartbeat."""
        while True:
            head = self.incoming.read(7)
            if len(head) < 7:
                sys.exit("the broker closed a connection")
            kind, _, length = struct.unpack(">BHI", head)
            payload = self.incoming.read(length + 1)[:-1]
            if kind != HEARTBEAT:
                return kind, payload

    def take(self) -> None:
        """Receive a batch of messages and acknowledge them."""
        tag = b""
        for _ in range(BATCH):
            arguments = self.expect(DELIVER)
            tag = arguments[1 + arguments[0] :][:8]
            _, header = self.receive()
            missing = struct.unpack(">Q", header[4:12])[0]
            while missing > 0:
                missing -= len(self.receive()[1])
        self.socket.sendall(method(1, ACK, tag + b"\x01"))


def main(port: int, messages: int, connections: int) -> None:
    clients = [Connection(port, number) for number in range(connections)]
    rounds = max(1, messages // (BATCH * connections))
    began = time.monotonic()
    for turn in range(rounds + BATCHES_AHEAD):
        for one in clients:
            if turn < rounds:
                one.socket.sendall(one.batch)
            if turn >= BATCHES_AHEAD:
                one.take()
    done = rounds * BATCH * connections
    print(f"{done / (time.monotonic() - began):.0f} messages per second")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
