"""The probe itself: it allocates nothing, moves nothing, agrees with the dynamic linker; and the reading of its records."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from interposing import MAIN, SHIM, compile_c, library, probe_path, prove, reasons_of, tool

from loam_lab.setup import build
from loam_lab.subjects.allocators import preloading, probe, registry
from loam_lab.subjects.allocators.identify import REQUIRED_SYMBOLS

# Forwards to glibc, counts, and tells on file descriptor 2 at the very end.
COUNTER = """
#define _GNU_SOURCE
#include <stdlib.h>
#include <unistd.h>
extern void* __libc_malloc(size_t);
extern void __libc_free(void*);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
static long calls;
#define COUNT() (void)calls++
void* malloc(size_t n) { COUNT(); return __libc_malloc(n); }
void free(void* p) { COUNT(); __libc_free(p); }
void* calloc(size_t a, size_t b) { COUNT(); return __libc_calloc(a, b); }
void* realloc(void* p, size_t n) { COUNT(); return __libc_realloc(p, n); }
void* memalign(size_t a, size_t n) { COUNT(); return __libc_memalign(a, n); }
void* aligned_alloc(size_t a, size_t n) { COUNT(); return __libc_memalign(a, n); }
int posix_memalign(void** into, size_t a, size_t n) { COUNT(); *into = __libc_memalign(a, n); return 0; }
size_t malloc_usable_size(void* p) { COUNT(); return p ? (((size_t*)p)[-1] & ~(size_t)7) - 8 : 0; }
/* Preloaded after the probe: then it is initialised before and finalised after it. */
__attribute__((destructor)) static void tell(void) {
  char text[21];
  int at = sizeof text;
  text[--at] = '\\n';
  long rest = calls;
  do text[--at] = '0' + rest % 10; while (rest /= 10);
  write(2, text + at, sizeof text - at);
}
"""

PLACEMENT = """
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  static char* blocks[4096];
  for (int i = 0; i < 4096; ++i) blocks[i] = malloc(16);
  for (int i = 1; i < 4096; ++i) printf("%td\\n", blocks[i] - blocks[i - 1]);
  return 0;
}
"""


@pytest.fixture
def proof_file(tmp_path: Path) -> Path:
    return tmp_path / "proof.jsonl"


def run(command: list[str], *preload: Path | str, proof_file: Path | None = None) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "LD_PRELOAD": ":".join(str(path) for path in preload)}
    if proof_file is not None:
        environment["LOAM_PROBE"] = str(proof_file)
        environment["LOAM_PROBE_VARIABLES"] = ",".join(sorted(registry.setting_variables()))
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True)


@pytest.mark.parametrize("what", ["program", "fixed", "python"])
def test_the_probe_calls_no_allocator(what: str, tmp_path: Path, proof_file: Path) -> None:
    counter = library(tmp_path, "counter.so", COUNTER)
    program = compile_c(tmp_path, "nothing", "int main(void) { return 0; }", *(["-no-pie"] if what == "fixed" else []))
    command = [str(program)] if what != "python" else [sys.executable, "-I", "-S", "-c", "pass"]
    without = run(command, counter).stderr
    silent = run(command, probe_path(), counter).stderr
    proving = run(command, probe_path(), counter, proof_file=proof_file).stderr
    assert len(proof_file.read_text().splitlines()) == 2
    if what == "python":  # hash seeds and addresses make its own count vary by a few; the probe's would be dozens
        assert abs(int(proving) - int(without)) < 20
    else:
        assert without == silent == proving, "calls without the probe, with it idle, with it at work"


def test_what_stands_in_front_proves_nothing_about_who_is_behind(tmp_path: Path) -> None:
    """The library that counts lies before the allocator; where libc is behind it and not that allocator, it shows."""
    program = compile_c(tmp_path, "burn", MAIN)
    front = str(build.ensure_built(["profile"])["libraries"]["profile"])
    counted = dataclasses.replace(registry.load("jemalloc"), front=front)
    assert prove(counted, program).status == "proven"
    assert prove(dataclasses.replace(registry.load("glibc"), front=front), program).status == "proven"
    alone = prove(dataclasses.replace(counted, libraries=()), program)
    assert alone.status == "wrong"
    assert "malloc_usable_size comes from" in reasons_of(alone)


def test_the_probe_does_not_move_blocks(tmp_path: Path, proof_file: Path) -> None:
    program = compile_c(tmp_path, "placement", PLACEMENT)
    plain = run([str(program)]).stdout
    probed = run([str(program)], probe_path(), proof_file=proof_file).stdout
    assert probed == plain and plain.count("32\n") > 4000


def test_providers_agree_with_dlsym(tmp_path: Path, proof_file: Path) -> None:
    source = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <stdio.h>
    int main(int argc, char** argv) {
      for (int i = 1; i < argc; ++i) {
        Dl_info info = {0};
        void* found = dlsym(RTLD_DEFAULT, argv[i]);
        printf("%s %s\\n", argv[i], found && dladdr(found, &info) ? info.dli_fname : "-");
      }
      return 0;
    }"""
    program = compile_c(tmp_path, "ask", source)
    for name in ("glibc", "jemalloc", "tcmalloc", "tbb", "mimalloc"):
        proof_file.unlink(missing_ok=True)
        preload = [*registry.load(name).libraries, probe_path()]
        run([str(program)], *preload, proof_file=proof_file)
        start = json.loads(proof_file.read_text().splitlines()[0])
        asked = run([str(program), *start["symbols"]], *preload).stdout
        for line in asked.splitlines():
            symbol, path = line.split(" ", 1)
            index = start["symbols"][symbol]
            ours = "-" if index is None else start["objects"][index]["path"]
            assert os.path.realpath(path) == os.path.realpath(ours), (name, symbol)


def test_records_are_whole_lines_with_hostile_paths(tmp_path: Path, proof_file: Path) -> None:
    folder = tmp_path / 'a "quoted\\ folder\n'
    folder.mkdir()
    program = folder / "program"
    shutil.copy(compile_c(tmp_path, "program", MAIN), program)
    run([str(program), "1"], probe_path(), proof_file=proof_file)
    records = [json.loads(line) for line in proof_file.read_text().splitlines()]
    assert [record["kind"] for record in records] == ["start", "exit"]
    assert records[0]["exe"] == str(program)


def test_many_processes_write_whole_lines(tmp_path: Path, proof_file: Path) -> None:
    source = """
    #include <sys/wait.h>
    #include <stdlib.h>
    #include <unistd.h>
    int main(void) {
      for (int i = 0; i < 200; ++i) if (fork() == 0) exit(0);
      while (wait(0) > 0) {}
      return 0;
    }"""
    run([str(compile_c(tmp_path, "many", source))], probe_path(), proof_file=proof_file)
    records = [json.loads(line) for line in proof_file.read_text().splitlines()]
    assert len(records) == 202 and len({record["pid"] for record in records}) == 201


def test_silent_without_its_variable(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "program", MAIN)
    traced = run([str(program), "1"], probe_path())
    assert traced.stdout == "" and traced.stderr == ""


def test_the_probe_alone_is_ignored_where_the_file_cannot_be_written(tmp_path: Path) -> None:
    program = compile_c(tmp_path, "program", MAIN)
    done = run([str(program), "1"], probe_path(), proof_file=tmp_path / "no folder" / "proof")
    assert done.returncode == 0 and done.stderr == ""


def test_paths_that_ld_preload_cannot_hold_get_a_link(tmp_path: Path, proof_file: Path) -> None:
    awkward = tmp_path / "with blank: and colon"
    awkward.mkdir()
    copy = awkward / "probe.so"
    shutil.copy(probe_path(), copy)
    environment = preloading.environment(registry.load("glibc"), copy, proof_file)
    program = compile_c(tmp_path, "program", MAIN)
    subprocess.run([str(program), "1"], env=environment, check=True)
    assert len(proof_file.read_text().splitlines()) == 2


def test_exit_from_a_signal_handler_inside_malloc(tmp_path: Path, proof_file: Path) -> None:
    # Under glibc the handler may hold an arena's lock; the probe must not take it.
    source = """
    #include <signal.h>
    #include <stdlib.h>
    #include <unistd.h>
    static void leave(int signal) { exit(0); }
    int main(void) {
      signal(SIGALRM, leave);
      ualarm(20000, 0);
      for (;;) free(malloc(3000));
    }"""
    program = compile_c(tmp_path, "leaves", source)
    for _ in range(5):
        environment = {"LD_PRELOAD": str(probe_path()), "LOAM_PROBE": str(proof_file)}
        subprocess.run([str(program)], env=environment, timeout=20, check=True)


# ---- reading: synthetic records ----


def start(pid: int, *, cpu_us: int = 1000, path: str | None = None, start_pid: int | None = None) -> dict[str, Any]:
    allocator = registry.load("mimalloc")
    objects = [{"path": path or allocator.path}]
    if path is None:
        objects[0]["build_id"] = allocator.build_id
    return {
        "kind": "start", "schema": 1, "pid": pid, "ppid": 1, "start_pid": start_pid or pid, "exe": f"/bin/p{pid}",
        "cpu_us": cpu_us, "children_cpu_us": 0, "rss_peak_kib": 1000, "variables": {}, "objects": objects,
        "symbols": dict.fromkeys(REQUIRED_SYMBOLS, 0),
    }  # fmt: skip


def end(pid: int, cpu_us: int, **more: Any) -> dict[str, Any]:
    return {
        "kind": "exit", "schema": 1, "pid": pid, "ppid": 1, "start_pid": pid, "cpu_us": cpu_us, "children_cpu_us": 0,
        "rss_peak_kib": 1000, "definers": [], "jvm": False, "namespaces": 1, "libc_arena_bytes": 0,
        "libc_mapped_bytes": 0, **more,
    }  # fmt: skip


def judge(proof_file: Path, records: list[dict[str, Any]], cpu_s: float, **more: Any) -> probe.Proof:
    proof_file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return probe.read(proof_file, registry.load("mimalloc"), cpu_s, **more)


def test_no_file_and_no_record_are_unproven(proof_file: Path) -> None:
    assert probe.read(proof_file, registry.load("mimalloc"), 1.0).status == "unproven"
    assert judge(proof_file, [], 0.0).cpu_share_proven == 0.0


def test_time_share_decides(proof_file: Path) -> None:
    one = [start(7), end(7, 1_000_000)]
    assert judge(proof_file, one, 1.0).status == "proven"
    assert judge(proof_file, one, 1.04).status == "proven"
    assert judge(proof_file, one, 1.10).status == "unproven"
    other = [start(8, path="/usr/lib/other.so"), end(8, 30_000)]
    few = judge(proof_file, one + other, 1.03)
    assert few.status == "proven" and any("/usr/lib/other.so" in warning for warning in few.warnings)
    much = [start(8, path="/usr/lib/other.so"), end(8, 300_000)]
    assert judge(proof_file, one + much, 1.3).status == "wrong"


def test_runtimes_with_memory_of_their_own_are_warned_of(proof_file: Path) -> None:
    assert judge(proof_file, [start(7), end(7, 1_000_000)], 1.0).warnings == []
    (java,) = judge(proof_file, [start(7), end(7, 1_000_000, jvm=True)], 1.0).warnings
    assert "a Java virtual machine maps its own heap" in java
    erlang = {**start(7), "exe": "/usr/lib/erlang/erts-13.1.5/bin/beam.smp"}
    (warning,) = judge(proof_file, [erlang, end(7, 1_000_000)], 1.0).warnings
    assert "an Erlang machine has allocators of its own" in warning and "+Mea min" in warning


def test_taking_memory_apart_belongs_to_the_process(proof_file: Path) -> None:
    large = [start(7), end(7, 100_000, rss_peak_kib=1 << 20)]
    assert judge(proof_file, large, 0.19).status == "proven"  # a GiB: about a tenth of a second in the kernel
    small = [start(7), end(7, 100_000)]
    assert judge(proof_file, small, 0.19).status == "unproven"
    assert judge(proof_file, small, 0.19, pid=7).status == "proven"  # known to be its own: no child was waited for
    assert judge(proof_file, [start(7), end(7, 100_000, children_cpu_us=85_000)], 0.19, pid=7).status == "unproven"


def test_program_before_exec_counts_for_itself(proof_file: Path) -> None:
    chain = [start(7), start(7, cpu_us=500_000), end(7, 1_000_000)]
    proof = judge(proof_file, chain, 1.0)
    assert proof.status == "proven" and [p["status"] for p in proof.processes] == ["proven", "proven"]
    assert [round(p["cpu_s"], 2) for p in proof.processes] == [0.50, 0.50]
    silent = judge(proof_file, [start(7), start(7, cpu_us=500_000)], 1.0)  # no record says how the second one ended
    assert silent.status == "unproven" and [p["status"] for p in silent.processes] == ["unproven", "unproven"]
    assert judge(proof_file, [start(7), start(7, cpu_us=5000), end(7, 1_000_000)], 1.0).status == "proven"
    assert judge(proof_file, [start(7, cpu_us=500_000), end(7, 1_000_000)], 1.0).status == "unproven"  # unseen wrapper


def test_other_build_id_under_the_same_path_is_wrong(proof_file: Path) -> None:
    replaced = start(7)
    replaced["objects"][0]["build_id"] = "00" * 20
    assert judge(proof_file, [replaced, end(7, 1_000_000)], 1.0).status == "wrong"


def test_libc_heap_decides_unless_declared(proof_file: Path) -> None:
    for key in ("libc_arena_bytes", "libc_mapped_bytes"):
        records = [start(7), end(7, 1_000_000, **{key: 135_168})]
        assert judge(proof_file, records, 1.0).status == "wrong"
        forwarding = dataclasses.replace(registry.load("mimalloc"), forwards="glibc")
        assert probe.read(proof_file, forwarding, 1.0).status == "proven"
    silent = end(7, 1_000_000)
    del silent["libc_arena_bytes"]
    assert judge(proof_file, [start(7), silent], 1.0).status == "unproven"


def test_damaged_lines_are_counted_not_fatal(proof_file: Path) -> None:
    judge(proof_file, [start(7), end(7, 1_000_000)], 1.0)
    whole = proof_file.read_bytes()
    proof_file.write_bytes(b'\xff{"kind"\n[1]\n' + whole + b'{"kind":"exit","pid":')
    proof = probe.read(proof_file, registry.load("mimalloc"), 1.0)
    assert proof.status == "proven" and "3 damaged lines" in proof.warnings[0]


def test_worst() -> None:
    proven = probe.Proof("proven", [], [], [], 1.0)
    wrong = dataclasses.replace(proven, status="wrong")
    assert [probe.worst(group) for group in ([], [proven], [proven, wrong])] == ["unproven", "proven", "wrong"]


def test_wrong_preload_is_not_hidden_by_a_shim(tmp_path: Path, proof_file: Path) -> None:
    # A forwarder preloaded before the allocator takes its place: the first in the scope serves.
    shim = library(tmp_path, "shim.so", SHIM)
    program = compile_c(tmp_path, "program", MAIN)
    run([str(program), "5"], shim, *registry.load("mimalloc").libraries, probe_path(), proof_file=proof_file)
    proof = probe.read(proof_file, registry.load("mimalloc"), 0.0)
    assert proof.status == "wrong" and "shim.so" in proof.reasons[0]


@pytest.mark.skipif(not tool("strace"), reason="no strace here")
def test_two_system_calls_that_write(tmp_path: Path, proof_file: Path) -> None:
    program = compile_c(tmp_path, "nothing", "int main(void) { return 0; }")
    environment = f"LD_PRELOAD={probe_path()}"
    done = subprocess.run(
        ["strace", "-e", "trace=write", "-E", environment, "-E", f"LOAM_PROBE={proof_file}", str(program)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stderr.count("write(") == 2
