"""Subjects: what identifies a program and its files, and what happens when they are gone or change during a campaign."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from campaigns import STM, FakeInstruments, cells, runner, study

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import plan as plans
from loam_lab.judging.result import summarise
from loam_lab.model.study import Study
from loam_lab.subjects import workloads
from loam_lab.subjects.subject import Subject, Unchanged, of_command


def test_all_files_and_nothing_else_identify_a_subject(tmp_path: Path) -> None:
    jar, script = tmp_path / "a.jar", tmp_path / "run"
    jar.write_text("1")
    script.write_text("2")
    made = Subject(("/usr/bin/java", "-jar", str(jar)), (str(jar), str(script)), (("A", "b"),))
    assert Subject.from_json(made.as_json()) == made
    before = made.digest()
    assert before.startswith("sha256:") and Subject(("x",), made.files).digest() == before
    script.write_text("3")
    assert made.digest() != before
    script.unlink()
    assert made.missing() == str(script)
    with pytest.raises(LoamError, match=r"run: cannot be read: No such file or directory \(restore the file\)"):
        made.digest()


def test_an_entry_may_be_started_by_the_python_of_the_lab() -> None:
    entry = {"argv": ["{python}", "-m", "x"], "files": [], "environment": {}}
    assert Path(Subject.from_json(entry).argv[0]).name.startswith("python")


def test_a_file_that_is_written_again_with_the_same_content_is_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("1")
    watched = Unchanged()
    assert watched.problem([str(file)]) == ""
    file.write_text("1")
    assert watched.problem([str(file)]) == ""
    file.write_text("2")
    assert watched.problem([str(file)]) == f"{file} was changed while the campaign ran"
    file.unlink()
    assert watched.problem([str(file)]) == f"{file} is gone"


def two_peers(folder: Path) -> tuple[Study, Path]:
    """A study over two executables, and the file of the second."""
    other = folder / "fake-other"
    shutil.copy(STM, other)
    return study(sync=[STM, str(other)], allocators=["plain"], blocks=8), other


def interfering(folder: Path, action: Any) -> FakeInstruments:
    """Instruments that do something to a file after the fourth run."""

    class Interfering(FakeInstruments):
        def load(self) -> Any:
            if self.runs == 4:
                action()
            return super().load()

    return Interfering()


@pytest.mark.parametrize("what", ["gone", "changed"])
def test_runs_of_a_subject_that_is_gone_or_changed_are_given_up_and_the_rest_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    made, other = two_peers(tmp_path)
    saved = other.read_text()

    def act() -> None:
        if what == "gone":
            other.unlink(missing_ok=True)
        else:
            other.write_text(saved + "# another build\n")
            other.chmod(0o755)

    ended = runner(made, tmp_path / "o", interfering(tmp_path, act)).run()
    message = f"{other} is gone" if what == "gone" else f"{other} was changed while the campaign ran"
    assert [text.partition(";")[0] for text in ended.changed] == [message]
    assert capsys.readouterr().err.count(message) == 1, "said once, not for each run"
    result = summarise.write(tmp_path / "o", elapsed_s=0, notes=ended.changed).as_json()
    assert result["warnings"][0].startswith(message)
    whole, cut = cells(result, sync="fake-stm", copy=0)[0], cells(result, sync="fake-other", copy=0)[0]
    assert whole["runs"] == 8 and 0 < cut["runs"] < 8 and cut["failed"] == 0, "no run of another build is among them"
    other.write_text(saved)
    other.chmod(0o755)
    again = runner(made, tmp_path / "o", resume=True).run()
    assert again.done == again.total and not again.changed, "restored, it goes on"


def test_a_subject_that_was_changed_is_not_resumed(tmp_path: Path) -> None:
    made, other = two_peers(tmp_path)
    runner(made, tmp_path / "o").run()
    other.write_text(other.read_text() + "# another build\n")
    with pytest.raises(LoamError, match="build_id of fake-other was"):
        runner(made, tmp_path / "o", resume=True).run()


def test_a_subject_of_the_checkout_whose_file_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = {"argv": [STM], "files": [STM, str(tmp_path / "data")], "environment": {}}
    monkeypatch.setattr(paths, "load_paths", lambda preset: {"executables": {"mine": entry}})
    with pytest.raises(LoamError, match=r"--sync=mine: .*data is missing \(run ./loam setup\)"):
        workloads.resolve_syncs(["mine"])


def test_paths_of_another_revision_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "loam-paths.json"
    file.write_text(json.dumps({"schema": 1, "executables": {}}))
    monkeypatch.setattr(paths, "paths_json", lambda preset="release": file)
    with pytest.raises(LoamError, match=r"has schema 1, this lab reads 2 \(run ./loam setup, which writes it again\)"):
        paths.load_paths()


def test_a_parameter_may_be_a_file_whose_content_is_part_of_the_identity(tmp_path: Path) -> None:
    peer, trace = tmp_path / "peer", tmp_path / "trace"
    parameter = '{"name":"trace","type":"file","default":"","unit":"","help":"a trace"},'
    place = '"kinds":["transactional","lock","none"],"parameters":['
    text = Path(STM).read_text().replace(place, place + parameter)
    peer.write_text(text)
    peer.chmod(0o755)
    made = study(sync=[str(peer)], parameters={"trace": str(trace)}, blocks=1)
    with pytest.raises(LoamError, match=r"-p trace=.*trace: there is no such file"):
        plans.make(made)
    ids = []
    for content in ("a", "b"):
        trace.write_text(content)
        runner(made, tmp_path / content).run()
        lines = [json.loads(line) for line in (tmp_path / content / "journal/local.jsonl").read_text().splitlines()]
        assert {line["identity"]["parameters"]["trace"][:7] for line in lines} == {"sha256:"}
        ids.append(sorted(line["id"] for line in lines))
    assert not set(ids[0]) & set(ids[1])


def test_what_a_command_writes_itself_is_no_part_of_it(tmp_path: Path) -> None:
    from loam_lab.commands.bench.target import Command

    kept, written = tmp_path / "kept", tmp_path / "written"
    kept.write_text("1")
    written.write_text("")
    argv = ["/bin/sh", "-c", "echo $1 >>$2", "sh", str(kept), str(written)]
    command = Command(argv)
    command.attempt(study(), FakeInstruments(), 10)
    files = command._subject.files
    assert str(kept) in files and str(written) not in files
    assert str(written) in of_command(argv).files
