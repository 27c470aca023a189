"""Parameters that are files: checked before anything runs, known by their contents, and the same for the whole campaign."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from campaigns import FakeInstruments, measure, runner, study

from loam_lab.base.errors import LoamError
from loam_lab.model.store import journal


class Meddling(FakeInstruments):
    """Does something to a file before the third run."""

    def __init__(self, meddle: Any) -> None:
        super().__init__()
        self._meddle = meddle

    def disturbance(self, *given: Any) -> Any:
        if self.runs == 2:
            self._meddle()
        return super().disturbance(*given)


def reading(file: Path) -> Any:
    return study(parameters={"structure": "list", "input": str(file)})


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "trace"
    file.write_text("what is replayed")
    return file


def inputs(folder: Path) -> set[str]:
    return {line["identity"]["parameters"]["input"] for line in journal.read(folder)}


def test_a_file_is_known_by_its_contents_wherever_it_lies(trace: Path, tmp_path: Path) -> None:
    measure(reading(trace), tmp_path / "a")
    copy = tmp_path / "other"
    copy.write_bytes(trace.read_bytes())
    _, result = measure(reading(copy), tmp_path / "b")
    (contents,) = inputs(tmp_path / "a")
    assert contents.startswith("sha256:") and inputs(tmp_path / "b") == {contents}
    assert {cell["parameters"]["input"] for cell in result["cells"]} == {str(copy)}, "the reader sees the path"
    manifest = json.loads((tmp_path / "b" / "campaign.json").read_text())
    assert manifest["files"] == [{"name": str(copy), "sha256": contents}]


def test_without_a_file_there_is_none(tmp_path: Path) -> None:
    measure(study(), tmp_path / "out")
    assert inputs(tmp_path / "out") == {""}


@pytest.mark.parametrize(
    ("name", "message"),
    [("gone", "-p input=.*gone: there is no such file"), ("", "-p input=.*: is no regular file")],
)
def test_what_is_no_file_is_refused_before_anything_runs(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(LoamError, match=message):
        measure(reading(tmp_path / name), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file.write_text("something else"), "was changed while the campaign ran"),
        (lambda file: file.unlink(missing_ok=True), "is gone"),
    ],
)
def test_runs_with_a_file_that_changes_are_given_up_and_those_before_kept(
    trace: Path, tmp_path: Path, change: Any, message: str
) -> None:
    (tmp_path / "out").mkdir()
    stopped = runner(reading(trace), tmp_path / "out", Meddling(lambda: change(trace))).run()
    assert len(stopped.changed) == 1 and stopped.changed[0].startswith(f"{trace} {message}")
    assert len(journal.read(tmp_path / "out")) == 3
    trace.write_text("what is replayed")
    ended = runner(reading(trace), tmp_path / "out", resume=True).run()
    assert ended.measured > 0 and len(inputs(tmp_path / "out")) == 1


def test_a_campaign_is_not_continued_with_other_contents(trace: Path, tmp_path: Path) -> None:
    measure(reading(trace), tmp_path / "out")
    trace.write_text("something else")
    with pytest.raises(LoamError, match=r"--resume=.*: sha256 of .*trace was sha256:"):
        measure(reading(trace), tmp_path / "out", resume=True)
