"""libloam-malloc.so as an object file: what it needs, what it shows, what it does before main."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from interposing import BURN, compile_c
from interposing import library as compile_library

from loam_lab.base import paths
from loam_lab.setup import build

# What lab/probe/probe.c looks for, and what is ours or glibc's beside it.
BESIDE = {
    "cfree", "free_sized", "free_aligned_sized", "__libc_malloc", "__libc_free", "__libc_calloc", "__libc_realloc",
    "__libc_memalign", "__libc_valloc", "__libc_pvalloc", "loam_malloc_json", "loam_malloc_summary", "loam_malloc_verify",
    "loam_malloc_lend", "loam_malloc_restock", "loam_malloc_refill", "loam_malloc_give",
}  # fmt: skip
# Of the compiler's start files, of the C++ library, of the dynamic linker.
WEAK = {
    "_ITM_deregisterTMCloneTable", "_ITM_registerTMCloneTable", "__cxa_finalize", "__gmon_start__",
    "_ZSt15get_new_handlerv", "_ZSt17__throw_bad_allocv", "__libc_stack_end", "_dl_find_object",
}  # fmt: skip


@pytest.fixture(scope="module")
def library() -> Path:
    return Path(build.ensure_built(["malloc"])["libraries"]["malloc"])


def output_of(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_it_shows_the_interface_and_nothing_else(library: Path) -> None:
    listed = output_of("nm", "--dynamic", "--defined-only", library)
    shown = {line.split()[2] for line in listed.splitlines()}
    probed = (paths.root() / "lab/probe/probe.c").read_text()
    table = probed[probed.index("kSymbols[] = {") : probed.index("};")]
    assert shown == set(re.findall(r'"(\w+)"', table)) | BESIDE  # a version would be behind an @


def test_it_needs_libc_alone(library: Path) -> None:
    assert re.findall(r"NEEDED.*\[(.*)\]", output_of("readelf", "--dynamic", "--wide", library)) == ["libc.so.6"]
    strong, weak = set(), set()
    for line in output_of("nm", "--dynamic", "--undefined-only", library).splitlines():
        kind, symbol = line.split()
        (weak if kind in "wv" else strong).add(symbol)
    assert all("@GLIBC_" in symbol for symbol in strong), strong
    assert {symbol.partition("@")[0] for symbol in weak} <= WEAK


def test_nothing_is_initialised_by_code_but_in_two_constructors(library: Path) -> None:
    sizes = dict(
        re.findall(r"\((INIT_ARRAYSZ|FINI_ARRAYSZ)\)\s+(\d+)", output_of("readelf", "--dynamic", "--wide", library))
    )
    entries = {name: int(size) // 8 for name, size in sizes.items()}
    # Each with one of the compiler's start files; the second constructor registers the barrier (machine_barrier.cpp).
    assert entries == {"INIT_ARRAYSZ": 3, "FINI_ARRAYSZ": 2}
    assert "_GLOBAL__sub_I" not in output_of("nm", library)


def test_it_cannot_be_unloaded_and_binds_at_once(library: Path) -> None:
    flags = output_of("readelf", "--dynamic", "--wide", library)
    assert "NODELETE" in flags and "BIND_NOW" in flags and "STATIC_TLS" in flags


def test_its_thread_local_storage_is_small_enough_for_dlopen(library: Path) -> None:
    # The dynamic linker keeps a little room for initial-exec variables of objects that are loaded later.
    match = re.search(
        r"^\s+TLS\s+\S+\s+\S+\s+\S+\s+\S+\s+(\S+)", output_of("readelf", "--segments", "--wide", library), re.M
    )
    assert match is None or int(match[1], 16) <= 256


@pytest.mark.skipif(platform.machine() != "x86_64", reason="places are pinned for x86-64")
def test_hot_entry_points_have_fixed_places_in_their_lines(library: Path) -> None:
    places = {
        name: int(address, 16) % 64
        for address, _, name in (
            line.split() for line in output_of("nm", "--dynamic", "--defined-only", library).splitlines()
        )
    }
    assert {name: places[name] for name in ("malloc", "_Znwm", "free", "_ZdlPv", "_ZdlPvm")} == {
        "malloc": 16, "_Znwm": 16, "free": 0, "_ZdlPv": 0, "_ZdlPvm": 0,
    }  # fmt: skip


def test_a_c_program_that_loads_it_late_survives(library: Path, tmp_path: Path) -> None:
    source = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    int main(int argc, char** argv) {
      void* handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
      if (!handle) return 1;
      void* (*allocate)(size_t) = (void* (*)(size_t))dlsym(handle, "malloc");
      void (*release)(void*) = (void (*)(void*))dlsym(handle, "free");
      for (int i = 0; i < 1000; ++i) release(allocate(100));
      dlclose(handle);
      burn(10);
      return 0;
    }"""
    program = compile_c(tmp_path, "late", BURN + source)
    subprocess.run([program, library], check=True, timeout=60)


def test_a_c_program_without_a_cpp_library_ends_with_a_message_where_new_must_throw(
    library: Path, tmp_path: Path
) -> None:
    source = "#include <stddef.h>\nvoid* _Znwm(size_t);\nint main(void) { return _Znwm((size_t)-1) != 0; }\n"
    program = compile_c(tmp_path, "news", source, str(library), f"-Wl,-rpath,{library.parent}")
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == -6
    assert "no C++ library to throw std::bad_alloc" in done.stderr


@pytest.mark.parametrize(
    "command", [["python3", "-c", "print(sum(len(str(i)) for i in range(100000)))"], ["sort", "-R"]]
)
def test_programs_of_the_system_run_on_it(library: Path, command: list[str]) -> None:
    text = "\n".join(str(i) for i in range(20000))
    environment = {**os.environ, "LD_PRELOAD": str(library), "PYTHONMALLOC": "malloc"}
    done = subprocess.run(command, input=text, env=environment, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout and done.stderr == ""


# Of spans and of mappings of their own, again and again: under a limit of address space the page map is the small one,
# and such blocks lie where it reaches.
LONG_MIB = (63, 64, 65, 200, 900)
LONG_BLOCKS = f"print(sum(len(bytearray(m << 20)) for m in {LONG_MIB} for _ in range(20)))"


# Allocates one small block for each argument, then prints the KiB of memory that are the process's own: pages of files
# that it has not written do not count, since how many are mapped with one fault is for the kernel to say.
OWN_MEMORY = """
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  (void)argv;
  while (--argc > 0) *(volatile char*)malloc(100) = 1;
  static char text[4096];
  if (read(open("/proc/self/smaps_rollup", O_RDONLY), text, sizeof text - 1) <= 0) return 1;
  const char* line = strstr(text, "Anonymous:") + strlen("Anonymous:");
  return write(1, line, strcspn(line, "k")) > 0 ? 0 : 1;
}
"""


def test_few_pages_are_touched_before_they_are_needed(library: Path, tmp_path: Path) -> None:
    program = compile_c(tmp_path, "own_memory", OWN_MEMORY, "-fno-builtin")
    nothing = compile_library(tmp_path, "nothing.so", "void nothing(void) {}")

    def pages(preloaded: Path, *blocks: str) -> int:
        environment = {**os.environ, "LD_PRELOAD": str(preloaded)}
        reported_kib = (
            subprocess.run([program, *blocks], capture_output=True, text=True, check=True, env=environment).stdout
            for _ in range(9)
        )
        # The least: where the stack begins decides about a page.
        return min(int(kib) for kib in reported_kib) * 1024 // os.sysconf("SC_PAGE_SIZE")

    idle = pages(library)
    # The library's variables: 3.
    assert idle - pages(nothing) <= 5, "a process that never allocates"
    # The page map and other tables, pages of the heap, the block: 8.
    assert pages(library, "block") - idle <= 10, "the first block"


@pytest.mark.parametrize("hardened", ["0", "1"])
def test_long_blocks_are_served_under_a_limit_of_address_space(library: Path, hardened: str) -> None:
    limited = f"ulimit -v {8 << 20}; exec python3 -S -c {shlex.quote(LONG_BLOCKS)}"
    environment = {**os.environ, "LD_PRELOAD": str(library), "LOAM_MALLOC_HARDENED": hardened}
    done = subprocess.run(["sh", "-c", limited], capture_output=True, text=True, check=False, env=environment)
    assert (done.stdout.strip(), done.stderr) == (str(20 * sum(LONG_MIB) << 20), "")
