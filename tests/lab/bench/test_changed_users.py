"""--profile and --flame of services that root starts and that go on as another user, in another root folder, or by setpriv."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from campaigns import asking
from interposing import compile_c

from loam_lab.base import paths
from loam_lab.campaign.counters import profile
from loam_lab.campaign.measure.instruments import scratch_folder
from loam_lab.commands.bench import bench, profiling, stacks
from loam_lab.setup import build
from loam_lab.subjects.allocators import preloading

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

NOBODY = 65534
BLOCKS = 5000
SERVICE = f"""
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {{
  int bad = strdup("read its configuration") == NULL;
  for (const char* at = argc > 1 ? argv[1] : ""; *at != 0; ++at) {{
    if (*at == 'c') bad |= chroot(argv[2]) != 0 || chdir("/") != 0;
    if (*at == 'u') bad |= setgid({NOBODY}) != 0 || setuid({NOBODY}) != 0;
    if (*at == 'd') for (int file = 3; file < 1100; ++file) close(file);
  }}
  for (int i = 0; i < {BLOCKS}; ++i) {{ void* volatile block = malloc(1000); free(block); }}
  return bad;
}}
"""


@pytest.fixture(scope="module")
def service(open_folder: Path) -> Path:
    build.ensure_built(["probe", "profile", "stacks"])
    return compile_c(open_folder, "service", SERVICE)


def ran(service: Path, does: str, open_folder: Path, library: str, variable: str) -> list[Path]:
    """What a service wrote with a library of ours in front, in the order of names."""
    with preloading.folder(scratch_folder()) as made:
        variables = profiling.in_front(paths.load_paths()["libraries"][library], {variable: str(made / library)})
        subprocess.run([service, does, open_folder], env=variables, check=True)
        kept = []
        for file in sorted(made.glob(f"{library}.*")):
            kept.append(open_folder / file.name)
            shutil.copyfile(file, kept[-1])
        return kept


@pytest.mark.parametrize("does", ["", "u", "cu", "du"])
def test_a_profile_is_written(service: Path, open_folder: Path, does: str) -> None:
    (one,) = profile.read(ran(service, does, open_folder, "profile", "LOAM_PROFILE"))
    assert profile.summary([one])["calls"] >= BLOCKS


@pytest.mark.parametrize("does", ["", "u", "cu", "du"])
def test_stacks_are_written(service: Path, open_folder: Path, does: str) -> None:
    (file,) = ran(service, does, open_folder, "stacks", "LOAM_STACKS")
    assert stacks.of_allocations(file.read_text()).stacks


def test_what_is_put_in_front_can_be_read_by_the_other_user(tmp_path: Path) -> None:
    assert tmp_path.stat().st_mode & 0o077 == 0, "closed to others"
    library = tmp_path / "library.so"
    library.write_text("made up")
    first, second = profiling.in_front(str(library), {"LD_PRELOAD": "/other.so"})["LD_PRELOAD"].split(":")
    assert preloading.readable_by_all(Path(first)) and preloading.original(first) == str(library)
    assert second == "/other.so"


def test_files_of_another_user_lie_where_nobody_looks() -> None:
    with preloading.folder() as made:
        assert made.stat().st_mode & 0o7777 == 0o1733, "all may make files, none may see or take those of others"
        assert made.parent.stat().st_mode & 0o7777 == 0o711
        assert len(made.name) == 32
    assert not made.parent.exists()


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
def test_a_program_behind_setpriv_has_a_profile(service: Path, tmp_path: Path) -> None:
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", str(service)]
    request = asking(allocators=["glibc"], blocks=1, profile="full", out=tmp_path / "o", as_json=True, report=False)
    bench.bench(command, request)
    (entry,) = json.loads((tmp_path / "o" / "result.json").read_text())["profiles"]
    assert entry["problem"] == "" and entry["calls"] >= BLOCKS
