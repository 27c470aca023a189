"""The second time of what a fleet does: an agent that is started again, jobs of a resumed campaign, silence that ends, clocks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from test_coordinate import FakeEngine, carried, counted
from test_coordinate import no_hosts_of_before as no_hosts_of_before

from loam_lab.campaign.fleet import agent, coordinate
from loam_lab.campaign.fleet.coordinate import SILENT_MAX_S
from loam_lab.campaign.fleet.engine import Status
from loam_lab.campaign.fleet.job import End, Job
from loam_lab.model.store import journal


def test_an_agent_that_is_started_again_runs_what_is_missing(tmp_path: Path) -> None:
    engine = FakeEngine(dying={0: 1})
    carried(tmp_path, engine)
    before = counted(tmp_path)
    for job in engine.submitted:
        assert agent.run(tmp_path, job.name, engine.instruments(job.host)) == 0
    assert counted(tmp_path) == before, "nothing was"
    first = engine.submitted[0]
    file = tmp_path / journal.FOLDER / f"{first.host}.jsonl"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[1:]))
    agent.run(tmp_path, first.name, engine.instruments(first.host))
    assert counted(tmp_path) == before


def test_jobs_of_a_resumed_campaign_are_other_jobs(tmp_path: Path) -> None:
    """One of the same name would end at once: the end of the earlier one is there."""

    class Ended(FakeEngine):
        def submit(self, job: Job) -> None:
            assert End.read(self.folder, job.name) is None
            super().submit(job)

    first, second = Ended(dead=frozenset(["beta"])), Ended()
    carried(tmp_path, first)
    assert carried(tmp_path, second, resume=True).done == 24
    names = [job.name for job in (*first.submitted, *second.submitted)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("silent", ["all now and then", "one host all the time"])
def test_an_engine_that_answers_in_between_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    now_s = 0.0

    class Moody(FakeEngine):
        """Its first jobs begin only after it was asked for them some times."""

        moods = 8

        def submit(self, job: Job) -> None:
            if self.moods:
                self.submitted.append(job)
            else:
                super().submit(job)

        def poll(self, submitted: Sequence[Job]) -> dict[str, Status]:
            nonlocal now_s
            if not self.moods:
                return super().poll(submitted)
            self.moods -= 1
            now_s += 0.7 * SILENT_MAX_S
            if not self.moods:
                for job in submitted:
                    agent.run(self.folder, job.name, self.instruments(job.host))
            all_answer = silent == "all now and then" and self.moods % 2 == 0
            return {
                job.name: Status("waiting") if all_answer or (silent != "all now and then" and job.host == "alpha")
                else Status("unknown", "no answer") for job in submitted
            }  # fmt: skip

    monkeypatch.setattr(coordinate, "time", SimpleNamespace(monotonic=lambda: now_s, sleep=lambda _: time.sleep(0.001)))
    ended = carried(tmp_path, Moody(poll_s=-1.0), allocators=["plain"])
    assert ended.done == ended.total


def test_a_clock_that_is_apart_is_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(agent, "_now", lambda: (datetime.now(UTC) + timedelta(seconds=100)).isoformat())
    ended = carried(tmp_path, FakeEngine())
    assert len(ended.changed) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if "the clock of host" in line]
    assert sorted(line.partition("the clock of host ")[2].split()[0] for line in lines) == ["alpha", "beta"]
