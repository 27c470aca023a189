"""What LOAM_MALLOC_GUARD_MS=N reports about a block between guard pages, and what it leaves alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from interposing import compile_c

from loam_lab.setup import build

# make() allocates until it has a sample: only of that is the usable size odd.
PROGRAM = """
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define OWN __attribute__((noinline, noclone))
OWN char* make(void) {
  for (long i = 0; i < 100000000; ++i) {
    char* const block = malloc(23);
    if (malloc_usable_size(block) == 23) return block;
    if (i % 2 == 0) free(block);
  }
  abort();
}
OWN void drop(void* block) { free(block); __asm__ volatile(""); }
OWN void touch(volatile char* byte) { *byte = 1; __asm__ volatile(""); }
static void* drop_there(void* block) { drop(block); return NULL; }
static void own_handler(int number) { (void)number; write(1, "mine\\n", 5); _exit(3); }
int main(int argc, char** argv) {
  char* const block = make();
  const char* const what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "past") == 0) for (int i = 0; i < 8192; ++i) touch(block + i);
  if (strcmp(what, "below") == 0) for (int i = 0; i < 8192; ++i) touch(block - i);
  if (strcmp(what, "at exit") == 0) touch(block + 23);
  if (strcmp(what, "at free") == 0) { touch(block + 30); drop(block); }
  if (strcmp(what, "freed") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, drop_there, block);
    pthread_join(thread, NULL);
    touch(block + 3);
  }
  if (strcmp(what, "twice") == 0) { drop(block); drop(block); }
  if (strcmp(what, "null") == 0) touch(NULL);
  if (strcmp(what, "handled") == 0) { signal(SIGSEGV, own_handler); touch(NULL); }
  puts("ended");
  return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guards")
    return compile_c(folder, "guards", PROGRAM, "-O1", "-fno-builtin", "-rdynamic", "-pthread")


def run(program: Path, what: str, setting: str = "1") -> subprocess.CompletedProcess[str]:
    library = build.ensure_built(["malloc"])["libraries"]["malloc"]
    return subprocess.run(
        [program, what], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "LD_PRELOAD": library, "LOAM_MALLOC_GUARD_MS": setting},
    )  # fmt: skip


def stacks(report: str) -> dict[str, str]:
    """The call stacks of a report, by what happened there."""
    parts = re.split(r"^  (found|freed|allocated) by thread \d+:\n", report, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(
    ("what", "message", "functions"),
    [
        ("past", "access past the end of a block: ", {"found": "touch", "allocated": "make"}),
        ("below", "access in front of a block: ", {"found": "touch", "allocated": "make"}),
        ("at exit", "write past the end of a block: ", {"allocated": "make"}),
        ("at free", "write past the end of a block: ", {"found": "drop", "allocated": "make"}),
        ("freed", "access to a freed block: ", {"found": "touch", "freed": "drop", "allocated": "make"}),
        ("twice", "double free: ", {"found": "drop", "freed": "drop", "allocated": "make"}),
    ],
)
def test_a_fault_is_reported_with_the_places(program: Path, what: str, message: str, functions: dict[str, str]) -> None:
    done = run(program, what)
    assert done.returncode == -signal.SIGABRT, done
    assert done.stderr.startswith(f"loam malloc: {message}0x"), done.stderr
    assert "a block of 23 bytes" in done.stderr
    shown = stacks(done.stderr)
    for place, function in functions.items():
        first = shown[place].splitlines()[0]
        assert re.match(rf"    #0 0x[0-9a-f]+ {function}\+0x[0-9a-f]+ \(.*guards\+0x[0-9a-f]+\)$", first), (
            place,
            first,
        )
    assert ("freed" in shown) == ("freed" in functions)


def test_the_distance_is_from_the_start_of_the_block(program: Path) -> None:
    assert re.search(r"the address is 0x[0-9a-f]+, byte 23 of the block", run(program, "at exit").stderr)


def test_what_it_is_not_about_ends_as_without_it(program: Path) -> None:
    assert run(program, "null").returncode == -signal.SIGSEGV
    assert run(program, "null").stderr == ""
    handled = run(program, "handled")
    assert (handled.returncode, handled.stdout) == (3, "mine\n")
    assert run(program, "").stdout == "ended\n"


def test_a_value_that_is_no_number_is_named(program: Path) -> None:
    library = build.ensure_built(["malloc"])["libraries"]["malloc"]
    for value in ("often", "-1", "3600001", ""):
        done = subprocess.run(
            ["true"], capture_output=True, text=True, check=True,
            env={**os.environ, "LD_PRELOAD": library, "LOAM_MALLOC_GUARD_MS": value},
        )  # fmt: skip
        assert done.stderr == (
            f"loam malloc: LOAM_MALLOC_GUARD_MS={value}: must be a whole number from 0 to 3600000; ignored\n"
        )
