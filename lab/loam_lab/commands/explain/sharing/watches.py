"""What the sampler wrote of one process, read without trust: its watches, what they caught, blocks, stacks, mappings."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from loam_lab.subjects import loaded

# The head of the file, as lab/interposer/sharing/log.hpp has it.
HEAD = struct.Struct("<QQQQQ")
MAGIC = 0x325248534D414F4C
MONITOR_KILLED = 2
LINE_BYTES, WORD_BYTES = 64, 8
LINE_WORDS = LINE_BYTES // WORD_BYTES


@dataclass(frozen=True)
class Block:
    """A live block. bytes: as asked for; stack: number of the call stack that made it, 0 where that is not known"""

    start: int
    bytes: int
    thread: int
    stack: int


@dataclass(frozen=True)
class Caught:
    """Another thread's use of a watched word.

    ip: of the instruction after it; sp: that thread's stack pointer; callers: of the function, most likely, innermost first
    """

    thread: int
    ip: int
    sp: int
    word: int
    block: Block | None
    callers: tuple[int, ...] = ()


@dataclass(frozen=True)
class Watch:
    """One watch of a cache line.

    ip, sp, address, bytes, writes: the access of the sampled thread
    words: numbers of the words of the line that were watched, the access's own among them
    others: threads in which they were watched, of `all_others` that there were
    ran_ns: how long these ran meanwhile, together; callers: as of what was caught
    """

    thread: int
    ip: int
    sp: int
    address: int
    bytes: int
    writes: bool
    words: frozenset[int]
    others: int
    all_others: int
    ran_ns: int
    caught: tuple[Caught, ...]
    block: Block | None
    callers: tuple[int, ...] = ()

    @property
    def line(self) -> int:
        """Where the cache line begins."""
        return self.address - self.address % LINE_BYTES

    @property
    def word(self) -> int:
        """Where the word begins."""
        return self.address - self.address % WORD_BYTES


@dataclass
class Process:
    """One process. unread: samples whose instruction has no operand that could be watched

    refused: what the kernel refused, with the number of the error, each once; lost: lines that found no room
    killed: whether the thread that watches was killed before the process ended: it said so itself at its end, or ended
    without exit handlers (_exit, a signal) while that thread stood in a call that asks the kernel for an event
    """

    pid: int = 0
    period_ns: int = 0
    window_ns: int = 0
    ended: bool = False
    killed: bool = False
    lost: int = 0
    threads: int = 0
    unread: int = 0
    watches: list[Watch] = field(default_factory=list)
    stacks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    refused: list[tuple[str, int]] = field(default_factory=list)
    loaded: loaded.Loaded = field(default_factory=loaded.Loaded)

    @property
    def samples(self) -> int:
        """All samples, each the same share of the threads' time."""
        return len(self.watches) + self.unread


def read(content: bytes) -> Process:
    """The process that a file is of.

    raises: ValueError where the file is none of the sampler's
    """
    if len(content) < HEAD.size:
        raise ValueError("is too short")
    magic, used, lost, ended, asking = HEAD.unpack_from(content)
    if magic != MAGIC:
        raise ValueError("is not the sampler's, or of another version")
    text = content[HEAD.size : HEAD.size + used].decode("utf-8", "replace")
    made = _Reading()
    for line in text.splitlines():
        made.take(line)
    return made.done(lost=lost, ended=bool(ended), killed=ended == MONITOR_KILLED or bool(asking and not ended))


class _Reading:
    def __init__(self) -> None:
        self._process = Process()
        self._mappings: dict[int, loaded.Mapping] = {}
        self._watch: Sequence[str] = ()
        self._caught: list[Sequence[str]] = []
        self._blocks: dict[int, Block] = {}
        self._callers: dict[int, tuple[int, ...]] = {}

    def take(self, line: str) -> None:
        kind, _, rest = line.partition(" ")
        words = rest.split()
        process = self._process
        if kind == "map":
            if (mapping := loaded.parse(rest)) is not None:
                self._mappings[mapping.start] = mapping
        elif kind == "watch":
            self._finish()
            self._watch = words
        elif kind == "caught":
            self._caught.append(words)
        elif kind == "block":
            start, size, thread, stack = int(words[1], 16), int(words[2]), int(words[3]), int(words[4])
            self._blocks[int(words[0], 16)] = Block(start, size, thread, stack)
        elif kind == "callers":
            self._callers[int(words[0], 16)] = tuple(int(word, 16) for word in words[1:])
        elif kind == "stack":
            process.stacks[int(words[0])] = tuple(int(word, 16) for word in words[1:])
        elif kind == "unread":
            process.unread += 1
        elif kind == "thread":
            process.threads += 1
        elif kind == "refused":
            if (words[0], int(words[1])) not in process.refused:
                process.refused.append((words[0], int(words[1])))
        elif kind == "begin":
            process.pid, process.period_ns, process.window_ns = int(words[0]), int(words[2]), int(words[3])
        elif kind != "maps":
            raise ValueError(f"has a line of an unknown kind: {line[:60]!r}")

    def _finish(self) -> None:
        if self._watch:
            thread, place, sp, address, size, how, mask, others, all_others, ran = self._watch
            bits = int(mask, 16)
            caught = tuple(
                Caught(
                    int(one[0]),
                    ip := int(one[1], 16),
                    int(one[2], 16),
                    word := int(one[3], 16),
                    self._blocks.get(word),
                    self._callers.get(ip, ()),
                )
                for one in self._caught
            )
            self._process.watches.append(Watch(
                int(thread), int(place, 16), int(sp, 16), int(address, 16), int(size), how == "w",
                frozenset(number for number in range(LINE_WORDS) if bits >> number & 1), int(others), int(all_others),
                int(ran), caught, self._blocks.get(int(address, 16)), self._callers.get(int(place, 16), ()),
            ))  # fmt: skip
        self._watch, self._caught, self._blocks, self._callers = (), [], {}, {}

    def done(self, *, lost: int, ended: bool, killed: bool) -> Process:
        self._finish()
        self._process.lost, self._process.ended, self._process.killed = lost, ended, killed
        self._process.loaded = loaded.Loaded.of(self._mappings.values())
        return self._process
