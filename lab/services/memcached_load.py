"""A load for memcached: python memcached_load.py PORT REQUESTS CONNECTIONS [write]

Half of the requests read, the others write values of three sizes, or delete; with `write` all of them write. They go out a
hundred at a time, and were made before the clock starts, so that the server has most of the work.
"""

from __future__ import annotations

import random
import socket
import sys
import time

KEYS, BATCH = 60_000, 100


def made(draw: random.Random, *, write: bool) -> tuple[bytes, int]:
    """A batch of requests that answer nothing, and reads behind them; returns it with how many reads there are."""
    words, reads = [], 0
    for _ in range(BATCH):
        key, chance = draw.randrange(KEYS), draw.random()
        if not write and chance < 0.5:
            words.append(b"get key:%d\r\n" % key)
            reads += 1
        elif not write and chance < 0.6:
            words.append(b"delete key:%d noreply\r\n" % key)
        else:
            size = draw.choice((40, 40, 300, 300, 2500))
            words.append(b"set key:%d 0 0 %d noreply\r\n%b\r\n" % (key, size, b"x" * size))
    return b"".join(words) + b"get none\r\n", reads + 1


def main(port: int, requests: int, connections: int, *, write: bool) -> None:
    draw = random.Random(1)
    batches = [made(draw, write=write) for _ in range(200)]
    sockets = []
    for _ in range(connections):
        sockets.append(socket.create_connection(("127.0.0.1", port)))
        sockets[-1].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    done, turn, began = 0, 0, time.monotonic()
    while done < requests:
        expected = []
        for one in sockets:
            data, reads = batches[turn % len(batches)]
            turn += 1
            one.sendall(data)
            expected.append(reads)
        for one, reads in zip(sockets, expected, strict=True):
            ends, tail = 0, b""
            while ends < reads:
                data = one.recv(1 << 18)
                if not data:
                    sys.exit("the server closed a connection")
                # An end may be cut in two; values hold none.
                ends += (tail + data).count(b"END\r\n") - tail.count(b"END\r\n")
                tail = (tail + data)[-4:]
        done += BATCH * connections
    print(f"{done / (time.monotonic() - began):.1f} requests per second")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), write=sys.argv[4:] == ["write"])
