"""Call stacks as trees: what perf and lab/interposer/stacks.cpp wrote, with names, and what of it is worth keeping.

A tree is [name, value, children], children the callees; a node's value holds those of its children.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loam_lab.model import functions
from loam_lab.model.frames import ALLOCATOR, KERNEL
from loam_lab.subjects import loaded, symtab

Tree = list[Any]
# Below this share of the whole a node is no wider than a pixel or two: it stays in its parent's value alone.
LEAST_SHARE = 1 / 400
DEPTH_MAX = 80
KINDS = ("time", "bytes", "blocks", "live")
# libc is both C library and allocator: of its functions these are the latter.
_LIBC_ALLOCATOR = re.compile(
    r"_?_?(libc_)?(malloc|free|calloc|realloc|cfree|memalign|posix_memalign|aligned_alloc|reallocarray)"
    r"|_int_(malloc|free|realloc|memalign).*|malloc_consolidate|sysmalloc|systrim.*|unlink_chunk.*|tcache_.*|alloc_perturb"
    r"|checked_request2size|arena_get.*|__malloc_.*|new_heap|heap_trim|sysmalloc.*|munmap_chunk|_mid_memalign.*"
)
_FRAME = re.compile(r"^\s+([0-9a-f]+) (.*?)(?:\+0x[0-9a-f]+)? \((.*)\)$")


def tree(stacks: Iterable[tuple[Sequence[str], float]]) -> Tree:
    """Stacks, outermost caller first, with a value each, as a tree whose root is "all"; small nodes are left out."""
    root: Tree = ["all", 0.0, {}]
    for frames, value in stacks:
        root[1] += value
        node = root
        for name in frames[:DEPTH_MAX]:
            node = node[2].setdefault(name, [name, 0.0, {}])
            node[1] += value
    return _kept(root, root[1] * LEAST_SHARE)


def _kept(node: Tree, least: float) -> Tree:
    children = sorted(node[2].values(), key=lambda child: str(child[0]))
    return [node[0], round(node[1], 6), [_kept(child, least) for child in children if child[1] >= max(least, 1e-12)]]


def of_perf(text: str, period_s: float, libraries: Iterable[str] = ()) -> list[tuple[list[str], float]]:
    """The stacks of `perf script -F comm,ip,sym,symoff,dso`, the process's name outermost; values in seconds.

    libraries: files of the allocator, whose frames are marked
    """
    own = {str(Path(file).resolve()) for file in libraries}
    stacks: list[tuple[list[str], float]] = []
    for sample in text.split("\n\n"):
        lines = sample.splitlines()
        if not lines or lines[0].startswith(("\t", "#")):
            continue
        frames = [_named(match[2], match[3], own) for line in lines[1:] if (match := _FRAME.match(line))]
        stacks.append(([lines[0].strip(), *_without_repeats(reversed(frames))], period_s))
    return stacks


def _named(symbol: str, file: str, own: Set[str]) -> str:
    known = symbol != "[unknown]"
    if "kernel" in file:
        return f"{symbol if known else '[kernel]'}{KERNEL}"
    name = short(symbol) if known else f"[{Path(file).name}]" if file.startswith("/") else "[unknown]"
    if str(Path(file).resolve()) in own or (Path(file).name.startswith("libc.so") and _LIBC_ALLOCATOR.fullmatch(name)):
        return f"{name}{ALLOCATOR}"
    return name


def short(symbol: str) -> str:
    """A function's name without types and versions: "main@@GLIBC_2.2" -> "main"."""
    name = symbol.partition("@")[0] or symbol
    return functions.short(name) if "(" in name or "::" in name or "<" in name else name


def _without_repeats(frames: Iterable[str]) -> list[str]:
    """Unnamed frames of one file in a row are one."""
    kept: list[str] = []
    for name in frames:
        if not (kept and name == kept[-1] and name.startswith("[")):
            kept.append(name)
    return kept


@dataclass
class Sampled:
    """What one process said of its allocations. values: by kind; callers: addresses, innermost first"""

    stacks: list[tuple[list[int], Mapping[str, float]]] = field(default_factory=list)
    maps: loaded.Loaded = field(default_factory=loaded.Loaded)

    def named(self, kind: str) -> list[tuple[list[str], float]]:
        """Stacks with names, outermost caller first, and their values of one kind."""
        names = _names(self.maps, {caller for callers, _ in self.stacks for caller in callers})
        return [
            (_without_repeats(names[caller] for caller in reversed(callers)), values[kind])
            for callers, values in self.stacks
            if values[kind] > 0
        ]


def of_allocations(text: str) -> Sampled:
    """What stacks.cpp wrote; raises: ValueError for a line that it does not write"""
    sampled = Sampled()
    mappings: list[loaded.Mapping] = []
    for line in text.splitlines():
        if line.startswith("stack "):
            _, size, blocks, live, *callers = line.split()
            values = {"bytes": float(size), "blocks": float(blocks), "live": float(live)}
            sampled.stacks.append(([int(caller, 16) for caller in callers], values))
        elif line.startswith("map ") and (mapping := loaded.parse(line.removeprefix("map "))) is not None:
            mappings.append(mapping)
        elif not line.startswith(("mean ", "map ")):
            raise ValueError(f"not a line of call stacks: {line[:60]!r}")
    sampled.maps = loaded.Loaded.of(mappings)
    return sampled


def _names(maps: loaded.Loaded, callers: Iterable[int]) -> dict[int, str]:
    by_caller: dict[int, str] = {}
    for caller in callers:
        # A return address belongs to what follows the call; a byte before it is still the call.
        place = maps.in_file(caller - 1)
        if place is None:
            by_caller[caller] = "[unknown]"
            continue
        file, address = place
        function = symtab.function(file, address)
        by_caller[caller] = short(function) if function else f"[{Path(file).name}]"
    return by_caller
