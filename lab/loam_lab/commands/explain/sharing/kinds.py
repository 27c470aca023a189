"""What two accesses to one cache line have to do with each other, in the form in which explain has conflicts."""

from __future__ import annotations

from loam_lab.commands.explain.evidence import Block, Conflict, Party
from loam_lab.commands.explain.sharing import watches
from loam_lab.commands.explain.sharing.names import Names
from loam_lab.commands.explain.sharing.watches import Caught, Process, Watch
from loam_lab.subjects import symtab

LINE_SHIFT = watches.LINE_BYTES.bit_length() - 1
# Each kind with its meaning, those that say the most first.
MEANINGS = {
    "other_block": "another thread used another block in the same cache line: the allocator placed them there",
    "same_block": "another thread used another word of the same block",
    "same_word": "another thread used the word itself: the program shares it",
    "static": "another thread used another variable, or another part of it, in the same cache line of static data",
    "stack": "another thread used the same cache line of a thread's stack",
    "unknown": "memory that came neither from malloc nor with a file",
}
# Kinds that go if the two words get cache lines of their own: they share nothing but the line.
FALSE_KINDS = ("other_block", "same_block", "static")


def conflict(at: int, process: Process, watch: Watch, caught: Caught, names: Names) -> Conflict:
    """One catch. at: the process's place among those that the names are of"""
    mine = _holder(at, process, watch.address, watch.block, names)
    theirs = _holder(at, process, caught.word, caught.block, names)
    if caught.word == watch.word:
        # Both are in the word: what is known of one holds for the other.
        theirs = mine = mine or theirs
    return Conflict(
        cause=_kind(watch, caught, mine, theirs), met="", weight=1, record=watch.line, shift=LINE_SHIFT,
        mine=Party(watch.address, names.of_code(at, watch.ip + 1, watch.callers), watch.thread, mine),
        theirs=Party(
            watch.address if caught.word == watch.word else caught.word,
            names.of_code(at, caught.ip, caught.callers), caught.thread, theirs,
        ),
    )  # fmt: skip


def _kind(watch: Watch, caught: Caught, mine: Block | None, theirs: Block | None) -> str:
    if caught.word == watch.word:
        return "same_word"
    if mine is None or theirs is None:
        return "unknown"
    if mine.name or theirs.name:
        stack = STACK in (mine.name, theirs.name)
        return "stack" if stack else "static" if mine.name and theirs.name else "unknown"
    return "same_block" if mine.start == theirs.start else "other_block"


STACK = "a thread's stack"


def _holder(at: int, process: Process, address: int, block: watches.Block | None, names: Names) -> Block | None:
    """What an address lies in: a block, a static variable, a stack; None where that is not known."""
    if block is not None:
        return Block(block.start, block.bytes, 0, block.thread, names.stacks.get((at, block.stack), 0))
    place = process.loaded.in_file(address)
    if place is not None:
        file, there = place
        variable = symtab.variable(file, there)
        if variable is None:
            return Block(address, 0, 0, 0, 0, f"static data of {file.rpartition('/')[2]}")
        size = f"{variable.bytes}-byte " if variable.bytes else ""
        return Block(
            address - there + variable.start, variable.bytes, 0, 0, 0, f"the {size}variable {variable.name}"
        )  # fmt: skip
    mapping = process.loaded.mapping(address)
    if mapping is None:
        return None
    stacks = {watch.sp for watch in process.watches} | {one.sp for watch in process.watches for one in watch.caught}
    if mapping.name == "[stack]" or (not mapping.name and any(mapping.start <= sp < mapping.end for sp in stacks)):
        return Block(mapping.start, 0, 0, 0, 0, STACK)
    return None
