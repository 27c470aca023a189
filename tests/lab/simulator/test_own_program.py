"""`loam simulate`: a stranger's sources become a table; what cannot be compiled, found or simulated is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from loam_lab.cli import main

# Two threads, each adds to a counter of its own: in one cache line, or a line apart.
WORK = """
void add(volatile long *counter, long times) {
  for (long i = 0; i < times; ++i) ++*counter;
}
"""
MAIN = """
#include <cstdlib>
#include <thread>
#include <vector>
extern "C" void add(volatile long* counter, long times);
alignas(64) static long counters[64];
int main(int, char** words) {
  const int threads = std::atoi(words[1]), apart = std::atoi(words[2]);
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) all.emplace_back([=] { add(&counters[i * apart], 20000); });
  for (auto& one : all) one.join();
}
"""
REFUSED = """
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int count, char **words) {
  int files[2];
  if (count == 2 && strcmp(words[1], "fork") == 0) return fork() < 0;
  if (count == 2 && strcmp(words[1], "vfork") == 0 && vfork() == 0) _exit(0);
  if (count == 2 && strcmp(words[1], "pipe") == 0) return pipe(files);
  return socket(AF_INET, SOCK_STREAM, 0) < 0;
}
"""


def source(folder: Path, name: str, text: str) -> str:
    file = folder / name
    file.write_text(text)
    return str(file)


def simulated(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert main.run(["simulate", *words[:-2], "--json", "--", *words[-2:]]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def error_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main.run(["simulate", *words]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err[captured.err.index("error: ") :]


def test_sources_become_a_table_by_threads_and_allocator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sources = [source(tmp_path, "main.cpp", MAIN), source(tmp_path, "work.c", WORK)]
    options = ["--threads", "1,2", "--allocator", "glibc,jemalloc", "--seeds", "1"]
    together = simulated(capsys, *sources, *options, "{threads}", "1")
    assert [(row["threads"], row["allocator"]) for row in together["rows"]] == [
        (1, "glibc"), (1, "jemalloc"), (2, "glibc"), (2, "jemalloc"),
    ]  # fmt: skip
    one, two = together["rows"][0], together["rows"][2]
    assert two["transfers"] > 10 * one["transfers"] and two["ms"] > one["ms"]
    assert two["ms_least"] <= two["ms"] <= two["ms_most"]
    line = together["lines"][0]
    assert line["where"] == f"{tmp_path}/work.c:3" and line["false_sharing"] > line["true_sharing"]
    apart = simulated(capsys, *sources, "--threads", "2", "--seeds", "1", "{threads}", "8")
    assert apart["rows"][0]["transfers"] < two["transfers"] / 10


def test_the_counts_are_printed_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["simulate", source(tmp_path, "empty.c", "int main(void) { return 0; }\n"), "--seeds", "1"]) == 0
    printed = capsys.readouterr().out
    assert "on sim:xeon-e5405, 1 seed;" in printed and "false sharing" in printed and " glibc " in printed


@pytest.mark.parametrize("call", ["fork", "vfork", "pipe", "socket"])
def test_what_waits_outside_is_refused_at_the_first_call(
    call: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    message = error_of(capsys, source(tmp_path, "refused.c", REFUSED), "--seeds", "1", "--", call)
    assert f"thread 0 calls {call}" in message and "run it on the host" in message


def test_sources_that_make_no_program_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = source(tmp_path, "work.c", WORK)
    assert "none of them has a function main (name all sources)" in error_of(capsys, work)
    assert "undefined reference to `add'" in error_of(capsys, source(tmp_path, "main.cpp", MAIN))
    broken = error_of(capsys, source(tmp_path, "broken.c", "int main(void) { return nothing; }\n"))
    assert "broken.c: does not compile" in broken and "undeclared" in broken
    assert "there is no such file" in error_of(capsys, str(tmp_path / "nosuch.c"))
    assert "not a C or C++ source" in error_of(capsys, source(tmp_path, "work.h", WORK))


def test_words_that_do_not_fit_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    work = source(tmp_path, "work.c", WORK)
    assert "no source files" in error_of(capsys)
    assert "did you mean sim:xeon-e5405?" in error_of(capsys, work, "--machine", "sim:xeon-e540")
    assert "is no simulated machine" in error_of(capsys, work, "--machine", "host")
    assert "goes with {threads}" in error_of(capsys, work, "--threads", "2")
    assert "goes with {threads}" in error_of(capsys, work, "--", "{threads}")
    assert "--seeds=0: must be at least 1" in error_of(capsys, work, "--seeds", "0")
    assert "did you mean jemalloc?" in error_of(capsys, work, "--allocator", "jemaloc")
