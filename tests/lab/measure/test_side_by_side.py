"""Runs of deterministic machines are under way together; those of the host are alone."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from campaigns import FakeInstruments, measure, study

from loam_lab.campaign.measure import campaign
from loam_lab.campaign.measure.side_by_side import SideBySide
from loam_lab.campaign.process.execute import execute
from loam_lab.subjects import machines
from loam_lab.subjects.machines import Machine


class Instruments(FakeInstruments):
    """Made-up instruments that know the machines of the registry."""

    def machine(self, name: str) -> Machine:
        return machines.find(name)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host, and a deterministic machine; two runs of the latter fit side by side."""
    host = replace(machines.host(), threads=2, facts=lambda: {"cpu": "made up", "cores": 2, "fingerprint": "h"})
    made = replace(host, name="twin", facts=lambda: {"cpu": "x", "cores": 2, "fingerprint": "t"}, deterministic=True)
    monkeypatch.setattr(machines, "registry", lambda: {"host": host, "twin": made})
    monkeypatch.setattr(campaign, "processors", lambda: 2)


def spans(lines: list[dict[str, Any]], machine: str) -> list[tuple[float, float]]:
    """Begin and end of each run of a machine, in seconds of the campaign."""
    return sorted(
        (line["t_s"], line["t_s"] + line["wall_s"]) for line in lines if line["identity"]["machine"]["name"] == machine
    )


def overlapping(ours: list[tuple[float, float]], others: list[tuple[float, float]]) -> int:
    return sum(a < d and c < b for a, b in ours for c, d in others if (a, b) != (c, d))


def test_only_deterministic_machines_run_side_by_side(two: None, tmp_path: Path) -> None:
    _, result = measure(study(machines=["host", "twin"], threads=[1, 2], blocks=6), tmp_path / "o", Instruments())
    lines = [json.loads(line) for line in (tmp_path / "o/journal/local.jsonl").read_text().splitlines()]
    host, twin = spans(lines, "host"), spans(lines, "twin")
    assert overlapping(twin, twin) > 0
    assert overlapping(host, host) == overlapping(host, twin) == 0
    assert len(host) == len(twin) and not result["failures"]


def test_each_run_has_its_line_whatever_ends_first(two: None, tmp_path: Path) -> None:
    ended, _ = measure(study(machines=["twin"], threads=[1, 2], blocks=6), tmp_path / "o", Instruments())
    lines = [json.loads(line) for line in (tmp_path / "o/journal/local.jsonl").read_text().splitlines()]
    assert ended.done == ended.total == len(lines) == len({line["id"] for line in lines})


def test_what_is_under_way_ends_with_the_campaign(tmp_path: Path) -> None:
    numbers: list[int] = []
    with SideBySide(2) as lanes:
        watch = lanes.watch(lambda pid: numbers.append(pid) or 0.01)
        lanes.start(None, lambda: vars(execute(["/bin/sleep", "900"], {}, timeout_s=900, watch=watch)))  # type: ignore[arg-type]
        while not numbers:
            pass
    with pytest.raises(ProcessLookupError):
        os.kill(numbers[0], 0)
