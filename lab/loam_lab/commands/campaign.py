"""A campaign from its plan to the exit status, the same for every command that measures: run, summarise, report, print."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.campaign.counters import planning
from loam_lab.campaign.measure.campaign import Ended, Runner
from loam_lab.campaign.measure.progress import duration
from loam_lab.commands.request import Output
from loam_lab.judging.result import summarise
from loam_lab.model.cell import COUNTING
from loam_lab.model.result import Result
from loam_lab.model.study import Study

INTERRUPTED = 130


@dataclass
class Campaign:
    """What is run for the user. began_s: when the command began, by time.monotonic(); ended: how its runs did, last"""

    runner: Runner
    output: Output
    began_s: float
    ended: Ended = field(init=False)

    def run(self, further: Sequence[str] = ()) -> Result:
        """Measure, and summarise what was measured. further: commands that repeat parts of it"""
        self.ended = self.runner.run()
        return summarise.write(
            self.runner.folder, elapsed_s=self._elapsed_s(), commands=[self.runner.command, *further],
            notes=self.ended.changed,
        )  # fmt: skip

    def close(self, result: Result, show: Callable[[Result], None]) -> int:
        """Report and print, and say where the result is and how to go on. show: prints it where no JSON was asked for

        returns: 0, 1 if a cell failed, 130 after Ctrl-C
        """
        reported = not self.output.report or not self.ended.done or make_report(result, self.runner.folder)
        if self.output.as_json:
            console.print_json(result)
        else:
            show(result)
        for text in result.warnings:
            console.warn(text)
        return self._status(result) or int(not reported)

    def _elapsed_s(self) -> float:
        return time.monotonic() - self.began_s

    def _status(self, result: Result) -> int:
        folder, ended = self.runner.folder, self.ended
        if ended.interrupted:
            again = f"{self.runner.command} --resume --out {shlex.quote(str(folder))}"
            console.note(f"interrupted: {ended.done} of {ended.total} runs are kept; continue with: {again}")
            return INTERRUPTED
        pages = [name for name in ("report.html", "index.html") if (folder / name).exists()]
        where = folder / pages[0] if pages else folder
        console.note(f"{ended.measured} runs in {duration(self._elapsed_s())}; result: {where}")
        if result.failures:
            failed = sum(failure.count for failure in result.failures)
            console.note(f"{failed} runs failed; see failures in {folder / 'result.json'}")
            return 1
        return int(bool(ended.changed))


def counted(study: Study) -> tuple[Study, list[dict[str, Any]], list[str]]:
    """The study with what counts for it here, what this machine can count with, and what is said of it."""
    sources = counter_sources(study)
    study, notes = planning.resolve(study, sources)
    return study, sources, notes


def counter_sources(study: Study) -> list[dict[str, Any]]:
    """What this machine can count with; asked only for a study that counts, or makes claims about counts."""
    counting = {purpose for group in study.groups for purpose in study.purposes_of(group)} & set(COUNTING)
    counting -= set(planning.OF_OTHERS)  # which need nothing of the machine
    if not counting and not study.claims:
        return []
    if counting:
        from loam_lab.setup import debian

        debian.ensure("count")
    from loam_lab.campaign.counters import sources

    return sources.probe()


def make_report(result: Result, folder: Path) -> bool:
    """Write the report into the folder; False if that failed.

    Whatever goes wrong here is told and not raised: the figures are still to be printed, and the report is made from
    result.json alone and can be made again.
    """
    try:
        from loam_lab.judging.claims import together
        from loam_lab.presenting import report

        report.build(result, folder, others=together.beside(folder, result.study) if result.claims else ())
        return True
    except Exception as problem:
        what = problem.line() if isinstance(problem, LoamError) else f"{type(problem).__name__}: {problem}"
        console.warn(f"no report: {what}; the measurements are kept; run ./loam report {folder}")
        return False
