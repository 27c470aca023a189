"""Blocks on other hosts, without hosts: what is lost is run again, what is known is not, and a dead host ends alone."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from campaigns import STM, FakeInstruments, study

import loam_lab
from loam_lab.base.errors import LoamError
from loam_lab.campaign.fleet import agent, coordinate, selection, survey
from loam_lab.campaign.fleet import job as jobs
from loam_lab.campaign.fleet.coordinate import LOST_MAX, Fleet
from loam_lab.campaign.fleet.engine import Status
from loam_lab.campaign.fleet.job import End, Job
from loam_lab.campaign.fleet.selection import Choice
from loam_lab.campaign.measure import builds
from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure.campaign import Ended, Runner
from loam_lab.judging.result import summarise
from loam_lab.model.cell import PlannedRun
from loam_lab.model.store import journal
from loam_lab.model.study import Study
from loam_lab.subjects import machines

HOSTS = ("alpha", "beta")


@dataclass
class Dying(FakeInstruments):
    """An agent with these is ended in its n-th run; -1 for never."""

    after: int = -1

    def disturbance(self, *arguments: Any) -> Any:
        if self.after == self.runs:
            raise KeyboardInterrupt
        return super().disturbance(*arguments)


@dataclass
class FakeEngine:
    """Runs each job in this process as it is submitted.

    dying: after how many runs an agent ends, by the number of its submission; dead: hosts on which none starts
    sha256: of the allocators, by host
    """

    dying: dict[int, int] = field(default_factory=dict)
    dead: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()
    sha256: dict[str, str] = field(default_factory=dict)
    submitted: list[Job] = field(default_factory=list)
    name: str = "fake"
    poll_s: float = 0.0
    folder: Path = Path()
    closed: int = 0

    def hosts(self) -> list[str]:
        return list(HOSTS)

    def ask(self, host: str, question: dict[str, Any]) -> dict[str, Any]:
        return {
            "lab": loam_lab.__version__, "revision": "r", "sees": True, "threads": 2, "utc": "", "facts": machines.host().facts(),
            **agent.contents(Study.model_validate(question["study"]), self.instruments(host), "release"),
        }  # fmt: skip

    def instruments(self, host: str, after: int = -1) -> Dying:
        return Dying(after=after, sha256=self.sha256.get(host, "0" * 64))

    def open(self, folder: Path, hosts: Sequence[str]) -> None:
        self.folder = folder

    def submit(self, job: Job) -> None:
        if job.host in self.refused:
            raise LoamError("--engine", "fake", "no")
        number = len(self.submitted)
        self.submitted.append(job)
        if job.host not in self.dead:
            agent.run(self.folder, job.name, self.instruments(job.host, self.dying.get(number, -1)))

    def poll(self, submitted: Sequence[Job]) -> dict[str, Status]:
        ended = {job.name: End.read(self.folder, job.name) for job in submitted}
        return {name: Status("ended") if end else Status("lost", "NODE_FAIL") for name, end in ended.items()}

    def fetch(self, job: Job) -> None:
        pass

    def cancel(self, submitted: Sequence[Job]) -> None:
        pass

    def close(self) -> None:
        self.closed += 1


def carried(folder: Path, engine: FakeEngine, *, resume: bool = False, **changed: Any) -> Ended:
    made = study(**changed)
    answers, _ = survey.ask(engine, made, "release", shared=True)
    group = made.groups[0].model_copy(update={"machines": tuple(answers)})
    made = made.model_copy(update={"groups": (group,)})
    fleet = Fleet(engine, answers)
    return Runner(
        made, plans.make(made), folder, FakeInstruments(), "./loam study run tiny", resume=resume, carrier=fleet
    ).run()


@pytest.fixture(autouse=True)
def no_hosts_of_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machines, "_declared", {})


def counted(folder: Path) -> Counter[str]:
    return Counter(line["id"] for line in journal.read(folder))


def test_each_host_is_a_machine_with_a_journal_of_its_own(tmp_path: Path) -> None:
    engine = FakeEngine()
    ended = carried(tmp_path, engine)
    assert (ended.done, ended.total, ended.measured, ended.changed) == (24, 24, 24, [])
    assert set(counted(tmp_path).values()) == {1}
    assert {file.stem for file in journal.files(tmp_path)} == set(HOSTS)
    for job in engine.submitted:
        assert {run.cell.machine for run in job.runs} == {job.host}
        assert Counter(run.block for run in job.runs) == {job.runs[0].block: 3}
    assert engine.closed == 1
    result = summarise.write(tmp_path, elapsed_s=0.0).as_json()
    assert {cell["factors"]["machine"] for cell in result["cells"]} == set(HOSTS)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_what_a_lost_job_lacks_is_submitted_again(tmp_path: Path, after: int) -> None:
    engine = FakeEngine(dying={0: after, 3: after})
    ended = carried(tmp_path, engine)
    assert (ended.done, ended.skipped, ended.changed) == (24, 0, [])
    assert set(counted(tmp_path).values()) == {1}
    again = [job for job in engine.submitted if len(job.runs) == 3 - after]
    assert len(again) >= 2


def test_a_host_that_brings_nothing_is_given_up_and_the_other_goes_on(tmp_path: Path) -> None:
    engine = FakeEngine(dead=frozenset(["beta"]))
    ended = carried(tmp_path, engine)
    assert (ended.done, ended.skipped) == (12, 12)
    assert len(ended.changed) == 1
    assert "host beta is given up" in ended.changed[0]
    assert "NODE_FAIL; it left no log in" in ended.changed[0]
    assert "is that folder shared with the host?" in ended.changed[0]
    assert sum(job.host == "beta" for job in engine.submitted) == LOST_MAX
    ended = carried(tmp_path, FakeEngine(), resume=True)
    assert (ended.done, ended.measured, ended.skipped) == (24, 12, 0)
    assert set(counted(tmp_path).values()) == {1}


def test_a_line_is_read_once_it_is_whole(tmp_path: Path) -> None:
    """What an agent writes arrives in pieces; the next agent completes a last line, or cuts it off."""
    file = tmp_path / journal.FOLDER / "alpha.jsonl"
    file.parent.mkdir()
    tail = coordinate._Tail(tmp_path)

    def news(text: str = "") -> list[str]:
        with file.open("a") as handle:
            handle.write(text)
        return [line["id"] for line in tail.news()]

    assert news('{"id": "first"}\n{"id": "sec') == ["first"]
    assert news() == []
    assert news('ond"}') == [], "it may go on"
    journal.Journal(tmp_path, "alpha").close()
    assert news() == ["second"]
    assert news('{"id": "torn') == []
    with journal.Journal(tmp_path, "alpha") as writer:
        writer.append({"id": "third"})
    assert news('{"id": "fourth"}\n') == ["third", "fourth"]


def test_lost_jobs_count_in_a_row_only(tmp_path: Path) -> None:
    class Shaky(FakeEngine):
        """Of the jobs of beta each third brings a run; the others bring none."""

        def submit(self, job: Job) -> None:
            before = sum(other.host == "beta" for other in self.submitted)
            if job.host == "beta":
                self.dying[len(self.submitted)] = 1 if before % LOST_MAX == LOST_MAX - 1 else 0
            super().submit(job)

    engine = Shaky()
    ended = carried(tmp_path, engine)
    assert (ended.done, ended.skipped, ended.changed) == (24, 0, [])
    assert sum(job.host == "beta" for job in engine.submitted) > 2 * LOST_MAX


def test_a_host_whose_jobs_are_killed_for_memory_is_given_up_with_what_to_do(tmp_path: Path) -> None:
    class Small(FakeEngine):
        def submit(self, job: Job) -> None:
            super().submit(job)
            if job.host == "beta":
                jobs.log_of(self.folder, job.name).write_text("loam: starting\n\nKilled\n")

        def poll(self, submitted: Sequence[Job]) -> dict[str, Status]:
            reason = "OUT_OF_MEMORY (OutOfMemory): killed for memory; ask for more with --engine-option=--mem=SIZE"
            statuses = super().poll(submitted)
            return {name: Status("lost", reason) if one.state == "lost" else one for name, one in statuses.items()}

    ended = carried(tmp_path, Small(dead=frozenset(["beta"])))
    assert (ended.done, ended.skipped) == (12, 12)
    (note,) = ended.changed
    assert note.startswith("host beta is given up: job 0")
    assert "killed for memory; ask for more with --engine-option=--mem=SIZE; it said: Killed; 3 jobs in a row" in note


def test_why_a_job_waits_is_told_once_unless_it_is_for_its_turn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Drained(FakeEngine):
        reasons = ("Resources", "ReqNodeNotAvail", "ReqNodeNotAvail")
        asked = 0

        def poll(self, submitted: Sequence[Job]) -> dict[str, Status]:
            self.asked += 1
            if self.asked <= len(self.reasons):
                return {job.name: Status("waiting", self.reasons[self.asked - 1]) for job in submitted}
            return super().poll(submitted)

    ended = carried(tmp_path, Drained(), allocators=["plain"])
    assert ended.done == ended.total
    lines = [line for line in capsys.readouterr().err.splitlines() if "the job waits" in line]
    assert [line.split(";")[0] for line in lines] == [f"{host}: the job waits: ReqNodeNotAvail" for host in HOSTS]


def test_a_refused_job_ends_no_other_host(tmp_path: Path) -> None:
    ended = carried(tmp_path, FakeEngine(refused=frozenset(["alpha"])))
    assert (ended.done, ended.skipped) == (12, 12)
    assert "host alpha is given up" in ended.changed[0]


def test_an_allocator_that_changed_on_a_host_is_named(tmp_path: Path) -> None:
    class Upgraded(FakeEngine):
        def instruments(self, host: str, after: int = -1) -> Dying:
            changed = host == "beta" and bool(self.submitted)
            return replace(super().instruments(host, after), sha256="1" * 64 if changed else "0" * 64)

    ended = carried(tmp_path, Upgraded())
    assert ended.done == 12
    assert (
        "sha256 of plain was 0000000000000000 when the campaign began and is 1111111111111111 now" in ended.changed[0]
    )


def test_a_cell_that_hangs_is_given_up_on_each_host(tmp_path: Path) -> None:
    parameters = {"structure": "list", "mode": "hang"}
    ended = carried(tmp_path, FakeEngine(), parameters=parameters, timeout_s=0.2, allocators=["plain"])
    assert ended.skipped > 0
    assert {line["state"] for line in journal.read(tmp_path)} == {"timeout"}


def test_interrupted_jobs_are_cancelled_and_their_lines_kept(tmp_path: Path) -> None:
    class Interrupted(FakeEngine):
        cancelled: tuple[str, ...] = ()

        def poll(self, submitted: Sequence[Job]) -> dict[str, Status]:
            if len(self.submitted) > 3:
                raise KeyboardInterrupt
            return super().poll(submitted)

        def cancel(self, submitted: Sequence[Job]) -> None:
            self.cancelled = tuple(job.host for job in submitted)

    engine = Interrupted()
    ended = carried(tmp_path, engine)
    assert ended.interrupted
    assert ended.done == len(counted(tmp_path)) == 12
    assert engine.cancelled == HOSTS
    assert carried(tmp_path, FakeEngine(), resume=True).done == 24


def answer(**changed: Any) -> dict[str, Any]:
    allocators = {"jemalloc": {"version": "5.3.0", "sha256": "a"}}
    return {
        "lab": loam_lab.__version__, "revision": "r", "sees": True, "allocators": allocators, "executables": {}, "lacking": {},
        **changed,
    }  # fmt: skip


def test_versions_that_differ_between_hosts_are_named() -> None:
    older = answer(allocators={"jemalloc": {"version": "5.2.1", "sha256": "b"}}, revision="s")
    notes = survey.differences({"alpha": answer(), "beta": older})
    assert len(notes) == 2
    assert "jemalloc is not the same file on all hosts: 5.3.0 on alpha, 5.2.1 on beta" in notes[0]
    assert "revision of Loam differs: r on alpha, s on beta" in notes[1]
    assert survey.differences({"alpha": answer(), "beta": answer()}) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"lab": "9.0"}, r"has version 9.0 of Loam, and this is .*\(bring both to the same version\)"),
        (
            {"sees": False},
            r"does not see the folder .*\(start from a folder that is shared with it, or use --engine ssh\)",
        ),
    ],
)
def test_a_host_that_does_not_fit_is_left_out_and_the_others_go_on(changed: dict[str, Any], message: str) -> None:
    class Odd(FakeEngine):
        def ask(self, host: str, question: dict[str, Any]) -> dict[str, Any]:
            return {**super().ask(host, question), **(changed if host == "beta" else {})}

    answers, notes = survey.ask(Odd(), study(), "release", shared=True)
    assert set(answers) == {"alpha"}
    assert re.search(f"^host beta is left out: --hosts=beta: {message}", notes[0])


@pytest.mark.parametrize(("name", "steps"), [("slurm", ["hosts", "built here", "asked"]), ("ssh", ["asked to build"])])
def test_what_nodes_share_is_built_before_they_are_asked(
    monkeypatch: pytest.MonkeyPatch, name: str, steps: list[str]
) -> None:
    seen: list[str] = []

    class Recorded(FakeEngine):
        def hosts(self) -> list[str]:
            seen.append("hosts")
            return ["alpha"]

        def ask(self, host: str, question: dict[str, Any]) -> dict[str, Any]:
            seen.append("asked to build" if question["build"] else "asked")
            return super().ask(host, question)

    monkeypatch.setattr(Choice, "engine", lambda choice: Recorded())
    monkeypatch.setattr(builds, "prepare", lambda study, preset: seen.append("built here"))
    reached, _, notes = selection.reach(study(), Choice(name, ("alpha",)))
    assert [step for step in dict.fromkeys(seen) if name == "slurm" or step != "hosts"] == steps
    assert reached.groups[0].machines == ("alpha",)
    assert notes == []


@pytest.mark.parametrize("build", [True, False])
def test_a_host_says_whether_it_sees_a_folder_and_builds_when_it_is_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, build: bool
) -> None:
    built: list[str] = []
    monkeypatch.setattr(agent, "prepare", lambda study, preset: built.append(study.name))
    monkeypatch.setattr(agent, "RealInstruments", lambda preset: FakeInstruments())
    question = {"study": study().model_dump(by_alias=True, mode="json"), "preset": "release", "build": build}
    for folder, sees in ((tmp_path, True), (tmp_path / "nowhere", False), ("", True)):
        reply = agent.describe({**question, "folder": str(folder)})
        assert reply["sees"] == sees
    assert built == [study().name] * (3 * build)
    assert reply["allocators"]["plain"]["sha256"] == "0" * 64 and reply["lacking"] == {}


def test_an_answer_is_found_among_other_output() -> None:
    mark = survey.MARK + json.dumps({"lab": "1"})
    assert survey.answer_in(f"motd\n{mark}\n", "", "alpha", "?") == {"lab": "1"}
    with pytest.raises(LoamError, match=r"alpha.*no such file.*shared\?"):
        survey.answer_in("", "sh: no such file", "alpha", "shared?")
    with pytest.raises(LoamError, match="lacks g"):
        survey.answer_in(survey.MARK + json.dumps({"error": "lacks g++"}), "", "alpha", "?")


def test_a_job_says_the_same_when_it_is_read_again(tmp_path: Path) -> None:
    made = plans.make(study(sync=[STM], blame=True))
    changed = replace(made.runs[1], changed=(("structure", "tree"),), tool=("--D1=1,2,3",))
    job = Job("00001-alpha", "alpha", (*made.runs, changed), 1.5)
    job.write(tmp_path)
    assert Job.read(tmp_path, job.name) == job
    assert isinstance(job.runs[0], PlannedRun)
    assert End.read(tmp_path, job.name) is None
    jobs.end_of(tmp_path, job.name).write_text("{")
    assert End.read(tmp_path, job.name) is None


def test_unlike_processors_are_named_and_their_hosts_measured() -> None:
    kind = {"cpu": "Intel x", "cores": 2}
    other = answer(facts={**kind, "cpu": "AMD y"})
    (note,) = survey.differences({"alpha": answer(facts=kind), "beta": other})
    assert "Intel x with 2 hardware threads on alpha, AMD y with 2 hardware threads on beta" in note
    assert "each is a machine of its own" in note
    assert survey.differences({"alpha": answer(facts=kind), "beta": answer(facts=kind)}) == []


@pytest.mark.parametrize(("apart_s", "message"), [(3600, "3600 s ahead"), (-90, "90 s behind"), (2, "")])
def test_a_clock_that_is_apart_is_named_once_and_the_campaign_goes_on(
    tmp_path: Path, apart_s: int, message: str
) -> None:
    class Elsewhere(FakeEngine):
        def submit(self, job: Job) -> None:
            super().submit(job)
            if job.host == "beta":
                there = datetime.now(UTC) + timedelta(seconds=apart_s)
                End("", there.isoformat()).write(self.folder, job.name)

    ended = carried(tmp_path, Elsewhere())
    assert (ended.done, ended.total) == (24, 24)
    notes = [note for note in ended.changed if "clock of host beta" in note]
    assert len(notes) == bool(message)
    # A second may pass between its end and our look.
    assert all(
        re.search(f"is ({message}|{message.replace(str(abs(apart_s)), str(abs(apart_s) - 1))})", note) for note in notes
    )
    assert all("set its clock by NTP" in note for note in notes)


def test_hosts_of_one_kind_are_declared_on_the_command_line() -> None:
    choice = Choice("ssh", ("alpha", "beta"), identical=(("alpha", "beta"),))
    choice.check()
    assert choice.words() == ["--engine", "ssh", "--hosts", "alpha,beta", "--identical", "alpha,beta"]
    with pytest.raises(LoamError, match=r"--identical=gamma.*alpha"):
        Choice("ssh", ("alpha", "beta"), identical=(("alpha", "gamma"),)).check()
    with pytest.raises(LoamError, match="needs two hosts or more"):
        Choice("ssh", ("alpha",), identical=(("alpha",),)).check()
    with pytest.raises(LoamError, match="--engine local has no use for it"):
        Choice(identical=(("alpha", "beta"),)).check()


def test_declared_hosts_get_their_comparison_in_the_result(tmp_path: Path) -> None:
    ended = carried(tmp_path, FakeEngine(), identical=[["alpha", "beta"]], blocks=6)
    assert ended.done == ended.total
    result = summarise.write(tmp_path, elapsed_s=0.0).as_json()
    (comparison,) = result["identical"]
    assert comparison["machines"] == list(HOSTS)
    assert comparison["passed"] == (not comparison["reasons"])
    (answer_,) = result["across_machines"]
    assert answer_["machines"] == list(HOSTS)
