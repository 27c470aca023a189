"""A program that is linked with an allocator of its own is the baseline as it is; "change nothing" is then the advice."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from campaigns import asking
from interposing import BUMP, MAIN, compile_c, library
from synthetic_results import tour
from typed import typed

from loam_lab.commands.bench import bench, equivalence, footprint, linkage, target
from loam_lab.model.result import Result
from loam_lab.subjects.allocators import registry


def linked_with(folder: Path, name: str, file: Path | str) -> str:
    return str(compile_c(folder, name, MAIN, "-Wl,--no-as-needed", str(file), f"-Wl,-rpath,{folder}"))


@pytest.fixture
def jemalloc(tmp_path: Path) -> str:
    return linked_with(tmp_path, "with-jemalloc", str(registry.load("jemalloc").path))


def test_the_library_is_known_by_its_name(tmp_path: Path, jemalloc: str) -> None:
    linked = linkage.find([[jemalloc]])
    assert linked.baseline == "jemalloc"
    assert linked.before_own[0] == registry.libc_path()
    assert "the baseline is jemalloc, the program as it is" in linked.notes[0]
    assert "may then be wrong" in linked.notes[0]


def test_what_the_lab_does_not_know_is_no_baseline(tmp_path: Path, jemalloc: str) -> None:
    plain = str(compile_c(tmp_path, "plain", MAIN))
    unknown = linked_with(tmp_path, "with-bump", library(tmp_path, "libbump.so", BUMP))
    assert linkage.find([[plain]]) == linkage.Linked([], [], "")
    assert linkage.find([[jemalloc], [plain]]).baseline == "", "two programs that differ"
    assert linkage.find([[jemalloc], [jemalloc]]).baseline == "jemalloc"
    assert linkage.find([[unknown]]).baseline == "" and linkage.find([[unknown]]).before_own


@pytest.mark.parametrize(
    "wrapper", ["setpriv --reuid=65534 --clear-groups", "nice -n 5", "env A=b", "taskset -c 0 nice"]
)
def test_a_program_behind_a_wrapper_is_looked_at(jemalloc: str, wrapper: str) -> None:
    line = [*wrapper.split(), jemalloc]
    assert linkage.find([line]) == linkage.find([[jemalloc]])
    assert target.Command([shutil.which("env") or "", *line]).workload == Path(jemalloc).name


@pytest.mark.parametrize("asked", [(), ("glibc", "tcmalloc"), ("glibc", "jemalloc")])
def test_the_program_as_it_is_is_the_baseline(jemalloc: str, asked: tuple[str, ...]) -> None:
    study, _ = bench._study(target.Command([jemalloc]), asking(allocators=asked), "jemalloc")
    assert study.baseline == study.allocators[0] == "jemalloc"
    assert "glibc" in study.allocators and len(set(study.allocators)) == len(study.allocators)
    usual, _ = bench._study(target.Command([jemalloc]), asking(allocators=asked))
    assert usual.baseline == "glibc"


def test_nothing_is_to_be_pasted_where_nothing_is_to_be_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(footprint, "find", lambda folder: footprint.Footprint())
    monkeypatch.setattr(equivalence, "find", lambda folder, by: {"": set()})
    raw = tour()
    raw["cells"] = raw["cells"][:1]
    raw["baseline"] = raw["cells"][0]["factors"]["allocator"] = "jemalloc"
    raw["cells"][0]["verdict"] = "baseline"
    result: Result = typed(raw)
    kept = bench.advise(result, "redis-server", tmp_path, "jemalloc").recommendation
    assert kept is not None
    assert (kept.allocator, kept.command, kept.lines) == ("jemalloc", "redis-server", {})
    assert kept.text.startswith("Change nothing: the program is linked with jemalloc itself. ")
