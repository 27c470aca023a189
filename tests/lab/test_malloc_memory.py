"""How much freed memory libloam-malloc.so keeps in an idle process, and how much it gets under a limit of addresses."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from interposing import compile_c

from loam_lab.presenting.pages import malloc_idle
from loam_lab.setup import build

MIB = 2**20

# Prints the resident bytes once a block of one size, all written, has become one of 64 KiB.
SHRINKS = """
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
int main(int argc, char** argv) {
  const size_t size = atol(argv[1]);
  char* block = malloc(size);
  memset(block, 1, size);
  block = realloc(block, 64 << 10);
  long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (fscanf(file, "%*d %ld", &pages) != 1 || block[(64 << 10) - 1] != 1) abort();
  printf("%ld\\n", pages * 4096);
}
"""

# How many bytes there are in blocks of one size.
TIGHT = """
#include <stdio.h>
#include <stdlib.h>
int main(int argc, char** argv) {
  const size_t size = argc > 1 ? atol(argv[1]) : 1;
  size_t sum = 0;
  while (malloc(size) != NULL) sum += size;
  char text[32];
  return fwrite(text, snprintf(text, sizeof text, "%zu\\n", sum), 1, stdout) == 1 ? 0 : 1;
}
"""


@pytest.fixture(scope="module")
def library() -> Path:
    return Path(build.ensure_built(["malloc"])["libraries"]["malloc"])


@pytest.fixture(scope="module")
def idle() -> Path:
    return malloc_idle.program()


def rests(program: Path, library: Path, size: int, seconds: int, **settings: str) -> tuple[float, float]:
    """Resident MiB right after the last free of 100 MiB, and some seconds later, less those at the start."""
    at_once, later = malloc_idle.rest(program, [library], settings, size, 100, [0, seconds])
    return at_once, later


@pytest.mark.parametrize("hardened", ["0", "1"])
def test_a_long_block_that_shrinks_keeps_little(library: Path, tmp_path: Path, hardened: str) -> None:
    program = compile_c(tmp_path, "shrinks", SHRINKS)
    environment = {**os.environ, "LD_PRELOAD": str(library), "LOAM_MALLOC_HARDENED": hardened}
    for size in (1 * MIB, 16 * MIB, 100 * MIB):
        done = subprocess.run(
            [program, str(size)], capture_output=True, text=True, check=True, timeout=60, env=environment
        )
        assert int(done.stdout) < 8 * MIB, f"{size} bytes that became 65536 keep {done.stdout.strip()}"


@pytest.mark.parametrize("hardened", ["0", "1"])
@pytest.mark.parametrize("size", [100_000, 1_000_000, 10_000_000])
def test_long_blocks_go_back_at_once(idle: Path, library: Path, size: int, hardened: str) -> None:
    at_once, _ = rests(idle, library, size, 0, LOAM_MALLOC_HARDENED=hardened)
    assert at_once < 16


def test_short_blocks_go_back_while_all_threads_rest_where_a_helper_is_asked_for(idle: Path, library: Path) -> None:
    sizes = (64, 1024, 16384)
    with ThreadPoolExecutor() as pool:
        amounts = list(pool.map(lambda size: rests(idle, library, size, 4, LOAM_MALLOC_BACKGROUND="1"), sizes))
    for size, (at_once, later) in zip(sizes, amounts, strict=True):
        assert at_once > 40, f"{size}: the test is about memory that stays without the helper"
        assert later < 20, f"of {size} bytes"


def test_short_blocks_of_a_process_that_rests_stay_up_to_a_bound(idle: Path, library: Path) -> None:
    for size in (64, 1024, 16384):
        (at_once,) = malloc_idle.rest(idle, [library], {}, size, 300, [0])
        assert 40 < at_once < 100, f"of {size} bytes"


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("tight"), "tight", TIGHT)


# glibc's malloc gets 13 and 29 MiB, jemalloc 0 and 15.
@pytest.mark.parametrize(("limit", "least"), [(16, 10), (32, 23), (64, 49)])
@pytest.mark.parametrize("size", [100, 4096, 60_000])
def test_a_tight_limit_of_addresses_leaves_most_to_the_program(
    tight: Path, library: Path, size: int, limit: int, least: int
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'ulimit -v {limit * 1024}; LD_PRELOAD="$1" exec "$2" {size}', "sh", library, tight],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert int(done.stdout) >= least * MIB
