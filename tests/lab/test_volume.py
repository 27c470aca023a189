"""Large results: nothing in a summary grows faster than the result, and the made-up campaign is a whole one."""

from __future__ import annotations

import cProfile
import json
import pstats
from pathlib import Path

import pytest

from loam_lab.report import builder
from loam_lab.statistics import summarise, volume

BLOCKS = 6


def calls(folder: Path, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often a summary of a campaign with so many levels calls each function, builtins of the interpreter included."""
    monkeypatch.setattr(volume, "SIZES", sizes)
    folder.mkdir()
    volume.write(folder, BLOCKS * len(sizes) * 25)
    profile = cProfile.Profile()
    result = profile.runcall(summarise.summarise, folder)
    assert len([cell for cell in result["cells"] if cell["copy"] == 0]) == 24 * len(sizes)
    stats: dict[tuple[str, int, str], tuple[int, ...]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    return {f"{Path(file).name}:{line} {name}": found[1] for (file, line, name), found in stats.items()}


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
    assert json.loads((tmp_path / "result.json").read_text()) == result
    assert result["failures"] == [] and len(result["timeline"]) == 500
    (hoard,) = (mean for mean in result["geomeans"] if mean["allocator"] == "hoard")
    assert hoard["low"] < 1.15 < hoard["high"]
    assert builder.build(result, tmp_path, source="volume")["html"].exists()
