"""Synchronisations on the JVM: the tests of jvm/ itself, and what the lab says where something is wrong.

Where Java or its libraries are not to be had, what needs them is skipped with the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.setup import build, jvm
from loam_lab.subjects.jvm import __main__ as front

GCBENCH = ("gcbench", "--seed", "7", "-p", "size=60", "-p", "operations=5", "-p", "warm_up=none")
BENCH7 = (
    "stmbench7",
    "--seed",
    "3",
    "-p",
    "size=tiny",
    "-p",
    "mix=write",
    "-p",
    "operations=400",
    "-p",
    "warm_up=none",
)


@pytest.fixture(scope="module")
def home() -> Path:
    try:
        jvm.ensure()
        return jvm.java_home()
    except LoamError as problem:
        pytest.skip(f"nothing runs on the JVM here: {problem.line()}")


def ran(library: str, *arguments: str) -> tuple[int, list[dict[str, object]], str]:
    """Status, records and what was said of one run."""
    environment = {**os.environ, "PYTHONPATH": str(paths.root() / "lab")}
    done = subprocess.run(
        [sys.executable, "-m", "loam_lab.subjects.jvm", library, *arguments], env=environment, capture_output=True, text=True,
        check=False, timeout=120,
    )  # fmt: skip
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def java(folder: Path, version: str) -> Path:
    (folder / "bin").mkdir(parents=True)
    (folder / "bin/java").touch()
    (folder / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return folder


def only(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes one folder the only Java."""
    monkeypatch.setattr(jvm, "_HOMES", home / "none")
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("PATH", str(home / "none"))


def test_no_java_names_the_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(tmp_path, monkeypatch)
    with pytest.raises(LoamError, match=r"^java: not found.*apt-get install openjdk-17-jdk-headless"):
        jvm.java_home()


def test_another_java_is_named_with_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(java(tmp_path / "jdk", "21.0.2"), monkeypatch)
    with pytest.raises(LoamError, match=r"is of version 21\.0\.2, and jvm-\.\.\. runs on Java 17"):
        jvm.java_home()


def test_java_17_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jdk = java(tmp_path / "jdk", "17.0.15")
    only(jdk, monkeypatch)
    assert jvm.java_home() == jdk


def test_a_library_that_is_not_the_locked_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "dot_loam", lambda: tmp_path)
    lib = tmp_path / "jvm/target/lib"
    lib.mkdir(parents=True)
    (lib / "asm-9.7.1.jar").write_bytes(b"another")
    with pytest.raises(LoamError, match=r"asm-9\.7\.1\.jar.*dependencies\.lock says 8cadd43a"):
        jvm.check_libraries()


@pytest.mark.parametrize(
    ("percent", "mib", "heap"), [("300", "0", 96 << 20), ("1", "0", 8 << 20), ("300", "5", 5 << 20)]
)
def test_heap_limit(percent: str, mib: str, heap: int) -> None:
    assert front.heap_bytes({"heap_percent": percent, "heap_mib": mib}, 32 << 20) == heap


def test_the_synchronisations_are_the_files_of_their_folder(home: Path) -> None:
    files = (paths.root() / "jvm/src/main/java/org/loam/jvm/syncs").glob("*.java")
    names = {f"jvm-{file.stem.lower()}" for file in files}
    known = build.ensure_built(sorted(names))["executables"]
    assert names == {name for name in known if name.startswith("jvm-")}
    assert names == {file.stem for file in (jvm.folder() / "describe").iterdir()}


def test_sources_are_formatted_and_their_tests_pass(home: Path) -> None:
    jvm.maven(home, "-Pstyle", "spotless:check", "test", offline=False)


@pytest.mark.parametrize("library", ["jvm-plain", "jvm-word"])
def test_a_run_speaks_the_records_of_every_workload(home: Path, library: str) -> None:
    status, records, stderr = ran(library, *GCBENCH)
    assert (status, stderr) == (0, "")
    assert [record["kind"] for record in records] == ["begin", "process", "iteration", "end"]
    assert records[-1]["verified"] is True
    described = json.loads(jvm.description(library).read_text())
    gcbench = next(one for one in described["workloads"] if one["name"] == "gcbench")
    assert {metric["name"] for metric in gcbench["metrics"]} <= records[2].keys()


def iteration(library: str, *arguments: str) -> dict[str, object]:
    """The iteration's record of a run that verifies."""
    status, records, stderr = ran(library, *arguments)
    assert (status, stderr, records[-1]["verified"]) == (0, "", True)
    return next(record for record in records if record["kind"] == "iteration")


@pytest.mark.parametrize("engine", ["tl2", "lsa"])
def test_what_the_agent_instruments_computes_what_plain_java_does(home: Path, engine: str) -> None:
    word = iteration("jvm-word", *BENCH7, "-p", f"engine={engine}")
    assert word["checksum"] == iteration("jvm-plain", *BENCH7)["checksum"]
    iteration("jvm-word", *BENCH7, "-p", f"engine={engine}", "--threads", "2")


@pytest.mark.parametrize("variant", ["base", "opt", "rm", "optrm"])
def test_the_agent_sees_the_arrays_of_every_variant_of_leetm(home: Path, variant: str) -> None:
    lee = ("leetm", "-p", "board=crossing", "-p", "tracks=6", "-p", "warm_up=none", "-p", f"variant={variant}")
    assert iteration("jvm-word", *lee, "--threads", "2")["laid"] == 6


def test_a_run_counts_each_operation_of_stmbench7(home: Path) -> None:
    _, records, _ = ran("jvm-plain", *BENCH7)
    counts = {str(record["name"]): record["counts"] for record in records if record["kind"] == "histogram"}
    succeeded, failed = counts["succeeded_of_operation"], counts["failed_of_operation"]
    assert isinstance(succeeded, list) and isinstance(failed, list)
    assert (len(succeeded), sum(succeeded) + sum(failed)) == (45, 400)


def test_every_collector_starts(home: Path) -> None:
    for collector in front.COLLECTORS:
        status, records, stderr = ran("jvm-plain", *GCBENCH, "-p", f"collector={collector}", "-p", "heap_mib=64")
        assert (status, records[-1]["verified"]) == (0, True), f"{collector}: {stderr}"


def test_a_heap_below_the_live_data_is_a_result(home: Path) -> None:
    status, records, stderr = ran("jvm-plain", "gcbench", "-p", "size=1000", "-p", "heap_percent=50")
    assert status == 4
    assert "out of memory: the heap limit is below what the program and its transactions hold" in stderr
    assert [record["kind"] for record in records] == ["begin"]


def test_threads_that_share_objects_are_refused_without_synchronisation(home: Path) -> None:
    status, _, stderr = ran("jvm-plain", "wormbench", "--threads", "2")
    assert status == 2
    assert stderr == (
        "error: --threads=2: jvm-plain synchronises nothing, and the threads of this program share objects (use one thread, "
        "or jvm-lock)\n"
    )


def test_a_machine_without_the_agent_is_refused(home: Path) -> None:
    command = [str(home / "bin/java"), "-jar", str(jvm.jar()), "jvm-word", *GCBENCH]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the agent is not loaded, and updates would be lost" in done.stderr


def test_an_agent_without_classes_is_refused(home: Path) -> None:
    agent = f"-javaagent:{jvm.jar()}=org/none/"
    command = [str(home / "bin/java"), agent, "-jar", str(jvm.jar()), "jvm-word", *GCBENCH]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "no class to instrument begins with this" in done.stderr


def test_the_collector_is_a_factor_of_a_campaign(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "result"
    matrix = ("--sync", "jvm-plain", "--collector", "serial,g1", "-p", "heap_mib=32", "--blocks", "2")
    data = ("-p", "size=40", "-p", "operations=3", "-p", "warm_up=none")
    command = [sys.executable, "-P", "-m", "loam_lab.cli", "run", "gcbench", *matrix, *data, "--out", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads((folder / "result.json").read_text())
    assert {cell["factors"]["collector"] for cell in result["cells"]} == {"serial", "g1"}
    assert {(line["factor"], line["level"]) for line in result["contrasts"]} == {("collector", "g1")}
