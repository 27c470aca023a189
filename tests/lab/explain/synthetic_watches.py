"""Synthetic files of the sampler, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Iterable

from loam_lab.commands.explain.sharing import watches
from loam_lab.commands.explain.sharing.watches import Process

LINE = 0x7F0000001000
CODE = 0x555500001000
STACKS = {1: 0x7FFD00001000, 2: 0x7F1200000100}
MAPS = (
    "maps",
    "map 555500000000-555500010000 r-xp 00000000 fe:00 12 /no/such/victims",
    "map 7f1200000000-7f1200010000 rw-p 00000000 00:00 0 ",
    "map 7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0 [stack]",
)


def file(lines: Iterable[str], *, ended: int = 1, lost: int = 0, asking: int = 0) -> bytes:
    """A file of the sampler's with these lines."""
    text = "".join(f"{line}\n" for line in ("begin 7 1 9970000 200000", *MAPS, *lines)).encode()
    return watches.HEAD.pack(watches.MAGIC, len(text), lost, ended, asking) + text + b"\0" * 64


def process(*lines: str) -> Process:
    return watches.read(file(lines))


def watch(
    address: int = LINE, *, how: str = "w", words: int = 0x0F, others: int = 1, all_others: int = 1, ran: int = 200000
) -> str:
    return f"watch 1 {CODE:x} {STACKS[1]:x} {address:x} 8 {how} {words:x} {others} {all_others} {ran}"


def caught(word: int, ip: int = CODE + 4, thread: int = 2) -> str:
    return f"caught {thread} {ip:x} {STACKS[2]:x} {word:x}"


def block(address: int, start: int, size: int, stack: int = 5) -> str:
    return f"block {address:x} {start:x} {size} 1 {stack}"
