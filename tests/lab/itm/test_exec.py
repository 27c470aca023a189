"""loam exec: an unmodified -fgnu-tm program on our libitm.so.1."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.subjects import itm

PROGRAM = """
#include <stdio.h>
const char* _ITM_libraryVersion(void);
static long sum;
int main(int count, char** words) {
  for (int i = 0; i < 1000; ++i) __transaction_atomic { sum += count; }
  printf("%ld %s %s\\n", sum, words[count - 1], _ITM_libraryVersion());
  return 3;
}
"""
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="there is no gcc")


def compiled(folder: Path, *options: str) -> Path:
    source, program = folder / "program.c", folder / "program"
    source.write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", "-fgnu-tm", str(source), "-o", str(program), *options], check=True)
    return program


@needs_gcc
@pytest.mark.parametrize("algorithm", ["norec", "etl-wb", "hybrid-norec"])
def test_an_unmodified_program_runs_on_our_library(tmp_path: Path, algorithm: str) -> None:
    try:
        itm.library()
    except LoamError as missing:
        pytest.skip(str(missing))
    command = [str(paths.root() / "loam"), "exec", "--itm", algorithm, "--", str(compiled(tmp_path)), "word"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3, done.stderr
    assert done.stdout.startswith("2000 word Loam")


@needs_gcc
def test_a_static_program_is_refused_by_name(tmp_path: Path) -> None:
    program = compiled(tmp_path, "-static")
    with pytest.raises(LoamError, match="linked statically"):
        itm.check(program)


@needs_gcc
def test_a_program_with_the_archive_inside_is_refused_by_name(tmp_path: Path) -> None:
    program = compiled(tmp_path, "-Wl,-Bstatic", "-litm", "-Wl,-Bdynamic")
    with pytest.raises(LoamError, match=r"libitm\.a inside"):
        itm.check(program)


def foreign_library(folder: Path, soname: str, version: str) -> None:
    """A library of that name with the one function that a program of these tests needs, of that version."""
    source, script = folder / "other.c", folder / "other.map"
    source.write_text('const char* _ITM_libraryVersion(void) { return "other"; }\n')
    script.write_text(version + " { global: *; };\n")
    options = ["-shared", "-fPIC", f"-Wl,-soname,{soname}", f"-Wl,--version-script={script}"]
    subprocess.run(["gcc", str(source), "-o", str(folder / soname), *options], check=True)


def linked(folder: Path, soname: str, *options: str) -> Path:
    source, program = folder / "plain.c", folder / "plain"
    source.write_text("const char* _ITM_libraryVersion(void); int main(void) { return *_ITM_libraryVersion(); }\n")
    subprocess.run(["gcc", str(source), str(folder / soname), "-o", str(program), *options], check=True)
    return program


@needs_gcc
def test_a_program_that_asks_for_another_version_is_refused_by_name(tmp_path: Path) -> None:
    foreign_library(tmp_path, itm.SONAME, "LIBITM_2.0")
    with pytest.raises(LoamError, match=r"asks libitm\.so\.1 for LIBITM_2\.0, and ours has LIBITM_1\.0, LIBITM_1\.1"):
        itm.check(linked(tmp_path, itm.SONAME))
    foreign_library(tmp_path, "libitm.so.2", "LIBITM_2.0")
    with pytest.raises(LoamError, match=r"is linked with libitm\.so\.2, another version"):
        itm.check(linked(tmp_path, "libitm.so.2"))


@needs_gcc
def test_a_program_that_looks_elsewhere_first_is_refused_by_name(tmp_path: Path) -> None:
    foreign_library(tmp_path, itm.SONAME, "LIBITM_1.0")
    old = "-Wl,--disable-new-dtags,-rpath,$ORIGIN"
    with pytest.raises(LoamError, match=rf"looks for libitm\.so\.1 in {tmp_path} first \(RPATH\)"):
        itm.check(linked(tmp_path, itm.SONAME, old))
    assert itm.check(linked(tmp_path, itm.SONAME, old), tmp_path / itm.SONAME) == "", "it finds ours there"
    assert itm.check(linked(tmp_path, itm.SONAME, "-Wl,--enable-new-dtags,-rpath,$ORIGIN")) == "", "this comes later"
    assert itm.check(linked(tmp_path, itm.SONAME, "-Wl,--disable-new-dtags,-rpath,/nowhere")) == ""


@needs_gcc
def test_a_program_for_another_processor_is_refused_by_name(tmp_path: Path) -> None:
    program = compiled(tmp_path)
    content = bytearray(program.read_bytes())
    content[18:20] = (183).to_bytes(2, "little")
    program.write_bytes(content)
    with pytest.raises(LoamError, match="is a program for aarch64, and our library supports x86_64"):
        itm.check(program)


@needs_gcc
def test_profiled_atomic_code_is_refused_by_the_compiler(tmp_path: Path) -> None:
    """T13: with -fprofile-arcs each counter is an access that no transaction may make."""
    source = tmp_path / "program.c"
    source.write_text(PROGRAM)
    command = ["gcc", "-O2", "-fgnu-tm", "-fprofile-arcs", "-c", str(source), "-o", str(tmp_path / "program.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "unsafe" in done.stderr


def test_a_program_without_it_is_named(tmp_path: Path) -> None:
    assert "not linked to libitm" in itm.check(Path("/bin/true"))
    script = tmp_path / "script"
    script.write_text("#!/bin/sh\n")
    assert itm.check(script) == ""


def test_an_unknown_algorithm_and_no_command_are_refused() -> None:
    with pytest.raises(LoamError, match="did you mean norec"):
        itm.execute(["true"], "norce")
    for name in ("htm-lock", "two-lock", "cc-synch"):
        with pytest.raises(LoamError, match=rf"--itm={name}: is not a transactional algorithm, .*choose of .*norec"):
            itm.execute(["true"], name)
    with pytest.raises(LoamError, match="no command"):
        itm.execute([], "norec")


def test_our_folder_comes_before_others() -> None:
    variables = itm.environment("norec", Path("/x"), {"LD_LIBRARY_PATH": "/a:/b", "HOME": os.sep})
    assert variables == {"LD_LIBRARY_PATH": "/x:/a:/b", itm.ALGORITHM_VARIABLE: "norec", "HOME": os.sep}


def test_symbols_are_bound_before_hardware_transactions() -> None:
    assert itm.environment(itm.HYBRID, Path("/x"), {})["LD_BIND_NOW"] == "1"
    assert "LD_BIND_NOW" not in itm.environment("norec", Path("/x"), {})


@needs_gcc
def test_the_hybrid_without_hardware_runs_in_software_and_says_so(tmp_path: Path) -> None:
    try:
        itm.library()
    except LoamError as missing:
        pytest.skip(str(missing))
    command = [str(paths.root() / "loam"), "exec", "--itm", itm.HYBRID, "--", str(compiled(tmp_path)), "word"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "LOAM_HTM": "off"})
    assert done.returncode == 3, done.stderr
    assert "hybrid-norec: hardware transactions are switched off by LOAM_HTM=off" in done.stderr
