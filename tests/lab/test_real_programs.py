"""Programs of the system on libloam-malloc.so: what they print must be what they print on glibc's malloc."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from loam_lab import paths
from loam_lab.setup import build

PYTHON = """
import json, threading, zlib, sqlite3
base = sqlite3.connect(":memory:")
base.execute("create table t (k integer primary key, v text)")
base.executemany("insert into t values (?, ?)", ((i, "x" * (i % 300)) for i in range(20000)))
found = {}
def work(n):
    rows = [{"a": list(range(i % 50)), "b": str(i)} for i in range(3000)]
    found[n] = zlib.crc32(json.dumps(rows).encode() * (n + 1))
threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sorted(found.items()), base.execute("select sum(k), sum(length(v)) from t where v like '%xx'").fetchone())
"""
PERL = 'my %h; $h{$_ % 5000} .= "y" x ($_ % 90) for 1..200000; print join ",", map { length $h{$_} } sort keys %h;'
AWK = """
BEGIN {
  for (i = 0; i < 300000; ++i) s[i % 999] = s[i % 999] i % 7
  for (i = 0; i < 999; ++i) t += length(s[i])
  print t
}"""

PROGRAMS = {
    "python3": ["-c", PYTHON],
    "perl": ["-e", PERL],
    "awk": [AWK],
    "g++": ["-std=c++20", "-O1", "-S", "-I.", "-o", "-", "runtime/heap/page_map.cpp"],
    "sort": ["requirements-dev.lock"],
    "git": ["log", "--stat", "-n", "40"],
    "tar": ["-c", "-z", "-f", "-", "--mtime=@0", "--sort=name", "runtime"],
}


@pytest.fixture(scope="module")
def library() -> Path:
    return Path(build.ensure_built(["malloc"])["libraries"]["malloc"])


def printed(command: list[str], **environment: str) -> bytes:
    done = subprocess.run(
        command, capture_output=True, check=False, timeout=120, cwd=paths.root(),
        env={**os.environ, "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0", **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("hardened", ["0", "1"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_output_is_the_same(library: Path, program: str, hardened: str) -> None:
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    command = [found, *PROGRAMS[program]]
    expected = printed(command)
    assert expected
    assert printed(command, LD_PRELOAD=str(library), LOAM_MALLOC_HARDENED=hardened) == expected
