"""libloam-malloc.so lends its blocks to transactions only where every allocation comes to it (docs/internals/heap.md)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from interposing import compile_c

from loam_lab.setup import build

SOURCE = """
#include <stdio.h>
#include <stdlib.h>
int loam_malloc_lend(const void** user) __attribute__((weak));
int main(void) {
  const void* user = "nobody";
  if (loam_malloc_lend == NULL) return puts("no function"), 0;
  free(malloc(16));
  printf("%d", loam_malloc_lend(&user));
  loam_malloc_lend(NULL);
  puts(user != NULL && ((const char*)user)[0] == 'n' ? " and taken back" : "");
}
"""


@pytest.fixture(scope="module")
def libraries() -> dict[str, str]:
    return dict(build.ensure_built(["malloc", "profile"])["libraries"])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c(tmp_path_factory.mktemp("lending"), "asks", SOURCE)


def answer(program: Path, *preloaded: str, **variables: str) -> str:
    environment = {**os.environ, **variables, "LD_PRELOAD": ":".join(preloaded)}
    done = subprocess.run([program], env=environment, capture_output=True, text=True, check=True, timeout=60)
    return done.stdout.strip()


def test_it_lends_where_it_serves_the_process(program: Path, libraries: dict[str, str]) -> None:
    assert answer(program, libraries["malloc"]) == "1 and taken back"


def test_it_lends_nothing_behind_a_library_that_counts_calls(program: Path, libraries: dict[str, str]) -> None:
    assert answer(program, libraries["profile"], libraries["malloc"]) == "0 and taken back"


@pytest.mark.parametrize("setting", [{"LOAM_MALLOC_HARDENED": "1"}, {"LOAM_MALLOC_GUARD_MS": "50"}])
def test_it_lends_nothing_where_it_watches_every_call(
    program: Path, libraries: dict[str, str], setting: dict[str, str]
) -> None:
    assert answer(program, libraries["malloc"], **setting) == "0 and taken back"


def test_other_allocators_have_no_such_function(program: Path) -> None:
    assert answer(program) == "no function"
