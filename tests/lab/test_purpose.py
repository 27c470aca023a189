"""What a run is for: runs of other purposes than timing, and journals from before runs had a purpose."""

from __future__ import annotations

import json
from pathlib import Path

from campaigns import measure, study

from loam_lab.measure import folder as folders
from loam_lab.measure import journal
from loam_lab.model.cell import digest
from loam_lab.statistics import data


def made_older(folder: Path) -> int:
    """Rewrite a campaign as the lab wrote it before runs had a purpose; returns: its number of blame runs."""
    lines = []
    blames = 0
    for line in journal.read(folder):
        line["blame"] = line.pop("purpose") == "blame"
        line["identity"]["blame"] = line["identity"].pop("purpose") == "blame"
        line["id"] = digest(line["identity"])
        blames += line["blame"]
        lines.append(line)
    (file,) = journal.files(folder)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    manifest = folders.read_manifest(folder)
    for part in (manifest["plan"]["study"], *manifest["plan"]["study"]["groups"]):
        for name in ("memory", "counters", "callgrind", "cachegrind"):
            del part[name]
    (folder / folders.MANIFEST).write_text(json.dumps(manifest))
    return blames


def test_journals_from_before_runs_had_a_purpose_are_read_and_continued(tmp_path: Path) -> None:
    before, _ = measure(study(blame=True), tmp_path / "out")
    assert made_older(tmp_path / "out") == 2
    after, result = measure(study(blame=True), tmp_path / "out", resume=True)
    assert (after.done, after.measured) == (before.done, 0)
    campaign = data.load(tmp_path / "out")
    assert {purpose: sum(map(len, runs.values())) for purpose, runs in campaign.special.items()} == {"blame": 2}
    assert sum(len(runs) for runs in campaign.timed.values()) == before.done - 2
    assert not any("cannot be read" in text for text in result["warnings"])
