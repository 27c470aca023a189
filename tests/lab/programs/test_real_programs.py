"""Real programs on libloam-malloc.so: what they come to must be what they come to on glibc's malloc.

How much they do: a little by default, more with the mark exhaustive. What is not installed is skipped with its packages.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from loam_lab.subjects.allocators import building, registry
from loam_lab.subjects.programs import running
from loam_lab.subjects.programs.catalogue import PROGRAMS

OURS = ("loam", "loam:hardened=1")


@pytest.fixture(scope="module", autouse=True)
def library() -> None:
    building.ensure_own(["loam"])


def under(allocator: str) -> dict[str, str]:
    """The variables that put an allocator into a process."""
    loaded = registry.load(allocator)
    return {**loaded.environment, **({"LD_PRELOAD": ":".join(loaded.libraries)} if loaded.libraries else {})}


def result(name: str, allocator: str, amount: int) -> bytes:
    with running.session(under(allocator), amount) as here:
        return PROGRAMS[name].work(here)


@functools.cache
def expected(name: str, amount: int) -> bytes:
    return result(name, "glibc", amount)


def skip_if_lacking(name: str) -> None:
    if lacks := running.lacks(PROGRAMS[name]):
        pytest.skip(f"{name} lacks {lacks}")


def compare(name: str, allocator: str, amount: int) -> None:
    skip_if_lacking(name)
    rule = expected(name, amount)
    assert rule
    own = result(name, allocator, amount)
    if own != rule:
        others = sorted(set(own.splitlines()) ^ set(rule.splitlines()))
        pytest.fail(f"{len(others)} lines differ from glibc's, or their order: {others[:20]}")


@pytest.mark.slow  # all of them together; ./loam test --fast only starts each
@pytest.mark.parametrize("allocator", OURS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_comes_to_the_same(name: str, allocator: str) -> None:
    compare(name, allocator, PROGRAMS[name].short)


@pytest.mark.exhaustive
@pytest.mark.timeout(5400)
@pytest.mark.parametrize("allocator", OURS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_comes_to_the_same_after_much_work(name: str, allocator: str) -> None:
    compare(name, allocator, PROGRAMS[name].long)


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_our_malloc_that_serves(name: str) -> None:
    skip_if_lacking(name)
    with running.session(under("loam"), 0) as here:
        bound = here.output(*PROGRAMS[name].starts, environment={"LD_DEBUG": "bindings"}, stderr=True).decode()
    # Calls may go through the executable's own table (an executable that is not position-independent), but end in a library.
    libraries = re.findall(r"binding file \S+ .* to (\S+) .*: normal symbol `malloc'", bound)
    assert {Path(one).name for one in libraries if ".so" in Path(one).name} == {"libloam-malloc.so"}
