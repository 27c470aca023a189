"""Sends whole blocks to hosts as jobs, and reads the results from the hosts' journals, however a job ends.

A job holds the blocks of one batch for one host, so that compared runs share a host and a time window.  If a job ends
early, its missing runs are submitted again.  A host whose jobs deliver nothing more is given up; the others continue.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.campaign.fleet import job as jobs
from loam_lab.campaign.fleet.engine import Engine, Status
from loam_lab.campaign.fleet.job import End, Job
from loam_lab.campaign.measure.given_up import GivenUp
from loam_lab.model.cell import PlannedRun, place_in, place_of
from loam_lab.model.store import journal

# A host is given up after so many jobs in a row that brought no run.
LOST_MAX = 3
# Reasons of an engine for which a job waits in its queue, and for which the user can do nothing but wait.
TURN = frozenset(("", "None", "Resources", "Priority"))
# An engine that does not answer for so long is taken to have ended for good.
SILENT_MAX_S = 600.0
LOOK_S = 0.1
CLOCK_MAX_S = 5.0


class Fleet:
    """Carries blocks to the hosts of an engine (measure.campaign.Carrier).

    hosts: what each host answered when it was asked, by name
    """

    def __init__(self, engine: Engine, hosts: Mapping[str, dict[str, Any]]) -> None:
        self._engine, self._hosts = engine, dict(hosts)
        self._gone: dict[str, str] = {}
        self._notes: dict[str, str] = {}
        self._printed: set[tuple[str, str]] = set()
        self._lost: dict[str, int] = dict.fromkeys(hosts, 0)
        self._number = 0
        self._folder = Path()
        self._tail = _Tail(Path())
        self._running: dict[str, Job] = {}

    def facts(self) -> dict[str, Any]:
        """See Carrier."""
        return self._hosts

    def problems(self) -> list[str]:
        """See Carrier."""
        return [*self._gone.values(), *self._notes.values()]

    @contextlib.contextmanager
    def opened(self, folder: Path) -> Iterator[None]:
        """See Carrier."""
        self._folder, self._tail = folder, _Tail(folder)
        (folder / jobs.FOLDER).mkdir(exist_ok=True)
        numbers = [file.stem.split("-")[0] for file in (folder / jobs.FOLDER).glob("*.json")]
        self._number = max((int(number) for number in numbers if number.isdigit()), default=0)
        self._engine.open(folder, [host for host in self._hosts if host not in self._gone])
        for _ in self._tail.news():
            pass  # the caller has read what was there
        try:
            yield
        finally:
            left = list(self._running.values())
            if left:
                self._engine.cancel(left)
                for job in left:
                    self._engine.fetch(job)
            self._engine.close()

    def carry(
        self, blocks: Sequence[Sequence[PlannedRun]], t_s: float, given_up: GivenUp
    ) -> Iterator[tuple[PlannedRun, dict[str, Any] | None]]:
        """See Carrier."""
        began_s = time.monotonic()
        missing: dict[str, dict[str, PlannedRun]] = {}
        for run in (run for block in blocks for run in block):
            missing.setdefault(run.cell.machine, {})[place_of(run)] = run
        answered_s = asked_s = began_s
        while missing:
            for host, runs in list(missing.items()):
                for place, run in list(runs.items()):
                    if host in self._gone or (given_up.reason(run.cell) and host not in self._running):
                        del runs[place]
                        yield run, None
                if not runs:
                    del missing[host]
                    self._running.pop(host, None)
                elif host not in self._running:
                    self._submit(host, list(runs.values()), t_s + time.monotonic() - began_s)
            yield from self._arrived(missing)
            now_s = time.monotonic()
            ended = [host for host, job in self._running.items() if End.read(self._folder, job.name)]
            if self._running and (ended or now_s - asked_s >= self._engine.poll_s):
                asked_s = now_s
                statuses = self._engine.poll(list(self._running.values()))
                if all(status.state == "unknown" for status in statuses.values()):
                    self._silent(now_s - answered_s, next(iter(statuses.values())))
                else:
                    answered_s = now_s
                for host, job in list(self._running.items()):
                    self._waits(host, statuses[job.name])
                    if statuses[job.name].state in ("ended", "lost"):
                        yield from self._ended(host, job, statuses[job.name], missing)
            if missing:
                time.sleep(LOOK_S)

    def _arrived(self, missing: Mapping[str, dict[str, PlannedRun]]) -> Iterator[tuple[PlannedRun, dict[str, Any]]]:
        for line in self._tail.news():
            place = place_in(line)
            for host, runs in missing.items():
                if place in runs:
                    self._lost[host] = 0
                    yield runs.pop(place), line

    def _submit(self, host: str, runs: list[PlannedRun], t_s: float) -> None:
        self._number += 1
        job = Job(f"{self._number:05d}-{host}", host, tuple(runs), round(t_s, 6))
        job.write(self._folder)
        try:
            self._engine.submit(job)
        except LoamError as problem:
            self._lose(host, problem.line())
            return
        self._running[host] = job

    def _ended(
        self, host: str, job: Job, status: Status, missing: Mapping[str, dict[str, PlannedRun]]
    ) -> Iterator[tuple[PlannedRun, dict[str, Any]]]:
        self._engine.fetch(job)
        before = len(missing.get(host, ()))
        yield from self._arrived(missing)
        del self._running[host]
        end = End.read(self._folder, job.name)
        if end is not None:
            self._clock(host, end.utc)
        if end is not None and end.problem:
            self._give_up(host, end.problem)
        elif end is None and missing.get(host):
            if before == len(missing[host]) == len(job.runs):
                self._lose(
                    host, f"job {job.name} ended early: {status.reason or 'no reason given'}{self._last_line(job)}"
                )
            else:
                console.note(f"{host}: job {job.name} ended early: {status.reason}; what is missing is submitted again")

    def _lose(self, host: str, why: str) -> None:
        self._lost[host] += 1
        if self._lost[host] >= LOST_MAX:
            self._give_up(host, f"{why}; {LOST_MAX} jobs in a row brought no run")
        else:
            console.note(f"{host}: {why}; trying again")
            time.sleep(LOOK_S)

    def _give_up(self, host: str, why: str) -> None:
        self._gone[host] = f"host {host} is given up: {why}; its missing runs are not measured; go on with --resume"
        console.warn(self._gone[host])

    def _last_line(self, job: Job) -> str:
        """The last line that the agent printed."""
        try:
            lines = jobs.log_of(self._folder, job.name).read_text(errors="replace").strip().splitlines()
        except OSError:
            return f"; it left no log in {self._folder / jobs.FOLDER}: is that folder shared with the host?"
        return f"; it said: {lines[-1][:300]}" if lines else ""

    def _waits(self, host: str, status: Status) -> None:
        """Print once why a host's job waits, unless it only waits for its turn."""
        if status.state == "waiting" and status.reason not in TURN and (host, status.reason) not in self._printed:
            self._printed.add((host, status.reason))
            console.note(
                f"{host}: the job waits: {status.reason}; see squeue and sinfo, or press Ctrl-C and go on with --resume"
            )

    def _silent(self, for_s: float, status: Status) -> None:
        if for_s > SILENT_MAX_S:
            limit = f"gave no answer for {for_s:.0f} s: {status.reason}"
            raise LoamError("--engine", self._engine.name, limit, "start it again, then go on with --resume")

    def _clock(self, host: str, utc: str) -> None:
        """Tell of a host whose clock is apart: its end was written a moment ago."""
        apart_s = (datetime.fromisoformat(utc) - datetime.now(UTC)).total_seconds()
        if abs(apart_s) > CLOCK_MAX_S and host not in self._notes:
            self._notes[host] = (
                f"the clock of host {host} is {abs(apart_s):.0f} s {'ahead' if apart_s > 0 else 'behind'}; times of day "
                "of its runs are off, durations are not; set its clock by NTP"
            )
            console.warn(self._notes[host])


class _Tail:
    """What is appended to the journals of a campaign."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}

    def news(self) -> Iterator[dict[str, Any]]:
        for file in journal.files(self._folder):
            at = self._read.get(file, 0)
            if file.stat().st_size <= at:
                continue
            with file.open("rb") as handle:
                handle.seek(at)
                while (raw := handle.readline()).endswith(b"\n"):
                    self._read[file] = at = at + len(raw)
                    with contextlib.suppress(ValueError):
                        line = json.loads(raw)
                        if isinstance(line, dict):
                            yield line
