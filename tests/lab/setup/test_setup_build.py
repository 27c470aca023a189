"""Builds on demand, tried on a small CMake project that stands for the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.setup import build

CMAKE = """cmake_minimum_required(VERSION 3.25)
project(Small CXX)
add_executable(loam-workload-one workloads/one.cpp)
add_executable(loam-workload-two workloads/two.cpp)
file(GENERATE OUTPUT "${CMAKE_BINARY_DIR}/loam-paths.json" CONTENT [[
{"schema": 2, "executables": {"one": {"argv": ["$<TARGET_FILE:loam-workload-one>"]}, "script": {"argv": ["/bin/true"]},
"two": {"argv": ["$<TARGET_FILE:loam-workload-two>"]}}, "libraries": {}}
]])
"""
PRESETS = {
    "version": 6,
    "configurePresets": [{"name": "release", "generator": "Ninja", "binaryDir": "${sourceDir}/build/release"}],
}


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout with two programs."""
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)
    (tmp_path / "CMakePresets.json").write_text(json.dumps(PRESETS))
    (tmp_path / "workloads").mkdir()
    for name in ("one", "two"):
        (tmp_path / f"workloads/{name}.cpp").write_text("int main() { return 0; }\n")
    monkeypatch.setenv("LOAM_ROOT", str(tmp_path))
    paths.root.cache_clear()
    yield tmp_path
    paths.root.cache_clear()


def test_only_what_is_asked_for_is_built(checkout: Path) -> None:
    one, two = checkout / "build/release/loam-workload-one", checkout / "build/release/loam-workload-two"
    content = build.ensure_built(["one"])
    assert content["executables"]["one"]["argv"][0] == str(one) and one.exists() and not two.exists()
    assert build.is_built(["one"]) and not build.is_built(["two"]) and not build.is_built()
    build.ensure_built(["two"])
    assert two.exists() and build.is_built(["one"]) and build.is_built()


def test_a_second_start_starts_no_process(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build.ensure_built()

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    build.ensure_built()


def test_what_changed_is_built_again(checkout: Path) -> None:
    build.ensure_built()
    one = checkout / "build/release/loam-workload-one"
    (checkout / "workloads/one.cpp").write_text("int main() { return 7; }\n")
    assert not build.is_built(["one"])
    build.ensure_built(["one"])
    assert subprocess.run([one], check=False).returncode == 7
    assert not build.is_built(["two"]), "two was not looked at since the sources changed"
    one.unlink()
    assert not build.is_built(["one"])
    build.ensure_built()
    assert one.exists() and build.is_built()


def test_a_new_program_is_found_without_being_told(checkout: Path) -> None:
    build.ensure_built(["one"])
    (checkout / "workloads/three.cpp").write_text("int main() { return 3; }\n")
    text = CMAKE.replace("file(GENERATE", "add_executable(loam-workload-three workloads/three.cpp)\nfile(GENERATE")
    (checkout / "CMakeLists.txt").write_text(
        text.replace('"two":', '"three": {"argv": ["$<TARGET_FILE:loam-workload-three>"]}, "two":')
    )
    assert Path(build.ensure_built(["three"])["executables"]["three"]["argv"][0]).exists()


def test_a_moved_checkout_is_configured_anew(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build.ensure_built(["one"])
    moved = checkout.with_name(checkout.name + "-moved")
    checkout.rename(moved)
    monkeypatch.setenv("LOAM_ROOT", str(moved))
    paths.root.cache_clear()
    assert not build.is_built(["one"])
    assert build.ensure_built(["one"])["executables"]["one"]["argv"][0] == str(
        moved / "build/release/loam-workload-one"
    )
    moved.rename(checkout)


def test_a_failing_compiler_is_shown(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "workloads/one.cpp").write_text("int main() { return nothing_of_that_name; }\n")
    with pytest.raises(
        LoamError, match=r"build/release: building one failed \(the end of the output is above"
    ) as caught:
        build.ensure_built(["one"])
    assert caught.value.exit_code == 1
    assert "nothing_of_that_name" in capsys.readouterr().err
    assert not build.is_built(["one"])
    (checkout / "workloads/one.cpp").write_text("int main() {}\n")
    build.ensure_built(["one"])


def test_a_script_is_there_without_a_build_and_older_paths_are_written_anew(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build.ensure_built(["one"])
    file = checkout / "build/release/loam-paths.json"
    file.write_text('{"schema": 1, "executables": {"one": "/gone"}, "libraries": {}}')
    assert not build.is_built(["one"])
    assert build.ensure_built(["one"])["schema"] == 2
    monkeypatch.setattr(build, "build", lambda *_, **__: pytest.fail("a script was built"))
    assert build.ensure_built(["script"])["executables"]["script"]["argv"] == ["/bin/true"]


def test_an_unknown_name_gets_the_nearest(checkout: Path) -> None:
    with pytest.raises(LoamError, match=r"--sync=tow: not the name of a synchronisation \(did you mean two\?\)"):
        build.ensure_built(["tow"])


def test_no_compiler(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout / "nothing"))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(LoamError, match=r"g\+\+: not found, .* \(as root: apt-get install g\+\+, or ./loam setup\)"):
        build.ensure_built(["one"])


def test_a_folder_that_cannot_be_written(checkout: Path) -> None:
    (checkout / "build").write_text("a file where a folder should be")
    with pytest.raises(LoamError, match=r"cannot be written: .* \(use a checkout in a folder of your own"):
        build.ensure_built(["one"])


def test_two_builds_wait_for_each_other(checkout: Path) -> None:
    code = "from loam_lab.setup import build; build.ensure_built()"
    command = [str(Path(build.sys.executable)), "-c", code]
    running = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=dict(os.environ)) for _ in range(2)]
    messages = [process.communicate(timeout=120)[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], messages
    assert sum("configuring" in text for text in messages) == 1, "the second found the first one's work"


def test_knowing_that_nothing_changed_takes_no_time() -> None:
    # CPU time, and the least of five: the machine may be busy with other tests.
    took_s = []
    for _ in range(5):
        began = time.process_time()
        build.sources_fingerprint()
        took_s.append(time.process_time() - began)
    assert min(took_s) < 0.1
