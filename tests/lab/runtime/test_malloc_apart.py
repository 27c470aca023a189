"""LOAM_MALLOC_APART for a program: what it is told of its file, and which of its blocks lie apart.

The sites are all addresses of one function: who compiles it need not be asked where in it the call returns to.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from interposing import compile_c
from interposing import library as compile_library

from loam_lab.commands.explain.sharing import sites
from loam_lab.setup import build

PROGRAM = """
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((noinline)) void* listed(size_t n) { void* p = malloc(n); __asm__("" ::: "memory"); return p; }
__attribute__((noinline)) void* other(size_t n) { void* p = malloc(n); __asm__("" ::: "memory"); return p; }
int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == 'n') return 0;
  if (argc > 1 && fork() == 0) return 0;
  printf("%zu %zu\\n", malloc_usable_size(listed(8)), malloc_usable_size(other(8)));
  return argc > 1 ? sleep(0) : 0;
}
"""
FRONT = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>
void* malloc(size_t n) {
  static void* (*next)(size_t);
  if (next == NULL) next = (void* (*)(size_t))dlsym(RTLD_NEXT, "malloc");
  void* p = next(n);
  __asm__("" ::: "memory");
  return p;
}
"""


@pytest.fixture(scope="module")
def library() -> Path:
    return Path(build.ensure_built(["malloc"])["libraries"]["malloc"])


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("apart")
    return compile_c(folder, "program", PROGRAM, "-Wl,--build-id=sha1")


def written(file: Path, program: Path, *, function: str = "listed", of: Path | None = None) -> Path:
    """A file whose sites are all addresses of a function. of: the program as it was"""
    symbols = subprocess.run(["nm", "--print-size", of or program], capture_output=True, text=True, check=True).stdout
    start, size = next(line.split()[:2] for line in symbols.splitlines() if line.endswith(f" {function}"))
    of_function = [
        sites.Site(((str(program), int(start, 16) + at),), f"in {function}") for at in range(1, int(size, 16) + 1)
    ]
    file.write_text(sites.text(str(program), of_function))
    return file


def streams_of(library: Path, file: Path | str, command: Sequence[Path | str], *front: Path) -> tuple[str, str]:
    """What a run says on both streams."""
    preload = " ".join(str(one) for one in (*front, library))
    environment = {**os.environ, "LD_PRELOAD": preload, sites.VARIABLE: str(file)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    return done.stdout, done.stderr


def test_blocks_of_the_listed_function_alone_lie_apart(library: Path, program: Path, tmp_path: Path) -> None:
    file = written(tmp_path / "sites", program)
    out, err = streams_of(library, file, [program])
    assert out == "128 16\n"
    sited = file.read_text().count("\nsite ")
    assert err.startswith(f"loam malloc: LOAM_MALLOC_APART: {sited - 1} of {sited} sites were never reached:\n")


def test_a_library_in_front_does_not_hide_who_called(library: Path, program: Path, tmp_path: Path) -> None:
    front = compile_library(tmp_path, "libfront.so", FRONT)
    out, _ = streams_of(library, written(tmp_path / "sites", program), [program], front)
    assert out == "128 16\n"


def test_sites_that_are_never_reached_are_named(library: Path, program: Path, tmp_path: Path) -> None:
    file = tmp_path / "sites"
    file.write_text(sites.text(str(program), [sites.Site(((str(program), 0x11),), "made at a.c:3")]))
    never = (
        f"loam malloc: LOAM_MALLOC_APART: 1 of 1 sites were never reached:\n  site 0+11 # made at a.c:3 in {program}\n"
    )
    assert streams_of(library, file, [program]) == ("16 16\n", never)
    # Once: not by a child that was forked. And not by another program that a script of this one might start.
    assert streams_of(library, file, [program, "f"])[1] == never
    assert streams_of(library, file, ["true"])[1] == ""


def test_a_library_that_was_never_loaded_is_named(library: Path, program: Path, tmp_path: Path) -> None:
    file = tmp_path / "sites"
    file.write_text(f"loam-apart 1\nprogram {program}\nmodule build-id 5f0c /lib/none.so\nsite 0+11\n")
    assert streams_of(library, file, [program])[1].endswith("  site 0+11 in /lib/none.so, which was never loaded\n")


@pytest.mark.parametrize("id_", ["sha1", "none"])
def test_sites_of_another_build_are_refused(library: Path, tmp_path: Path, id_: str) -> None:
    program = compile_c(tmp_path, "program", PROGRAM, f"-Wl,--build-id={id_}")
    file = written(tmp_path / "sites", program)
    assert ("build-id" if id_ == "sha1" else "module file") in file.read_text()
    assert streams_of(library, file, [program])[0] == "128 16\n"
    # The same code at the same addresses, and yet another build.
    compile_c(tmp_path, "program", PROGRAM + 'const char more[] = "more";\n', f"-Wl,--build-id={id_}")
    out, err = streams_of(library, file, [program])
    assert out == "16 16\n"
    assert err == (
        f"loam malloc: LOAM_MALLOC_APART: {program} is another build than the one whose sites the file has: they are not "
        "used\n  write the file anew: ./loam explain --apart FILE -- COMMAND\n"
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read (No such file or directory)"),
        ("", "line 1 is missing: the file is empty"),
        ("loam-apart 1\nsite 0+1\n", "line 2 names a module that no line before has"),
    ],
)
def test_a_wrong_file_is_named(library: Path, program: Path, tmp_path: Path, content: str | None, why: str) -> None:
    file = tmp_path / "sites"
    if content is not None:
        file.write_text(content)
    assert streams_of(library, file, [program]) == (
        "16 16\n", f"loam malloc: LOAM_MALLOC_APART={file}: {why}; no block is apart\n"
    )  # fmt: skip


def test_the_lab_knows_a_build_as_the_tools_do(program: Path) -> None:
    notes = subprocess.run(["readelf", "--notes", program], capture_output=True, text=True, check=True).stdout
    assert f"Build ID: {sites.identity(program).removeprefix('build-id ')}\n" in notes
