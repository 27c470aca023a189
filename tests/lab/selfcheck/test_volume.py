"""Large results: nothing in a summary grows faster than the result, and the made-up campaign is a whole one."""

from __future__ import annotations

import cProfile
import json
import pstats
import re
import subprocess
import sys
from pathlib import Path

import pytest

from loam_lab.dev.selfcheck import volume
from loam_lab.judging.result import diagnostics, summarise
from loam_lab.presenting.report import builder

BLOCKS = 6


def calls(folder: Path, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often a summary of a campaign with so many levels calls each function, builtins of the interpreter included."""
    monkeypatch.setattr(volume, "SIZES", sizes)
    folder.mkdir()
    volume.write(folder, BLOCKS * len(sizes) * 25)
    profile = cProfile.Profile()
    result = profile.runcall(summarise.summarise, folder)
    assert len([cell for cell in result.cells if cell.copy == 0]) == 24 * len(sizes)
    stats: dict[tuple[str, int, str], tuple[int, ...]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    return {f"{Path(file).name}:{line} {name}": counts[1] for (file, line, name), counts in stats.items()}


def test_twice_the_cells_take_twice_the_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: a scan of all cells for each cell would make it four times."""
    calls(tmp_path / "warm", (8, 9), monkeypatch)  # a first summary pays for the imports
    small = calls(tmp_path / "small", tuple(range(8, 13)), monkeypatch)
    large = calls(tmp_path / "large", tuple(range(8, 18)), monkeypatch)
    steeper = {
        name: (small[name], count) for name, count in large.items() if count > 2.3 * max(small.get(name, 0), 100)
    }
    assert steeper == {}, "for 120 and for 240 cells"


def test_the_made_up_campaign_can_be_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume, "SIZES", (16, 32))
    assert volume.write(tmp_path, 10 * 2 * 25) == 500
    result = summarise.write(tmp_path, elapsed_s=0.0)
    assert json.loads((tmp_path / "result.json").read_text()) == result.as_json()
    assert result.failures == [] and len(result.timeline) == 500
    (hoard,) = (mean for mean in result.geomeans if mean.allocator == "hoard")
    assert hoard.low is not None and hoard.high is not None and hoard.low < 1.15 < hoard.high
    assert builder.build(result, tmp_path, source="volume")["html"].exists()


def test_several_machines_are_part_of_the_made_up_campaign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volume, "SIZES", (16,))
    assert volume.write(tmp_path, 8 * 2 * 25, machines=2) == 400
    result = summarise.summarise(tmp_path).as_json()
    (answer,) = result["across_machines"]
    assert answer["machines"] == ["host1", "host2"]
    assert len(answer["cases"]) == 4 and answer["holds"] in ("yes", "order")
    assert len(result["timeline"]) == 400


def test_many_blocks_leave_single_values_of_the_primary_metric_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, one in (
        ("SIZES", (16,)),
        ("THREADS", (1,)),
        ("SYNCS", ("etl-wb",)),
        ("ALLOCATORS", ("glibc", "jemalloc")),
    ):
        monkeypatch.setattr(volume, name, one)
    monkeypatch.setattr(summarise, "VALUES_MAX", 30)
    monkeypatch.setattr(diagnostics, "TIMELINE_MAX", 50)
    assert volume.write(tmp_path, 40 * 3) == 120
    result = summarise.summarise(tmp_path).as_json()
    metrics = result["cells"][0]["metrics"]
    assert len(metrics["ops_per_s"]["values"]) == 40 and metrics["wall_s"]["values"] == []
    assert metrics["wall_s"]["estimate"] == pytest.approx(0.12)
    assert len(result["timeline"]) == 40, "every third of 120"


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_a_million_records_are_reported_in_two_gigabytes() -> None:
    """In a process of its own: what it uses is its own. Its time depends on the machine; ./loam selfcheck volume prints it."""
    command = [
        sys.executable,
        "-m",
        "loam_lab.cli",
        "selfcheck",
        "volume",
        "--records",
        "1000000",
        "--machines",
        "4",
    ]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=3500).stdout
    assert output.startswith("1000000 records")
    peak = re.search(r"^(\d+) MiB at the peak", output, re.MULTILINE)
    assert peak and int(peak[1]) < 2048, output
