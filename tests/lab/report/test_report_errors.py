"""What the report refuses, and what it leaves whole when it cannot write; the command around it."""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import Any

import pytest
import synthetic_results
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.model.result import of_json
from loam_lab.presenting import report
from loam_lab.presenting.report import commands


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda result: result.update(schema=1), "has schema 1, this lab reads 2"),
        (lambda result: result.pop("schema"), "schema"),
        (lambda result: result.pop("cells"), "has no cells"),
        (lambda result: result["cells"][0].pop("factors"), "missing required field `factors`"),
        (lambda result: result["cells"].append(None), r"cells\[4\]: Expected `object`, got `null`"),
    ],
)
def test_other_versions_and_torn_results_are_refused(tmp_path: Path, change: Any, word: str) -> None:
    result = copy.deepcopy(synthetic_results.ad_hoc())
    change(result)
    with pytest.raises(LoamError, match=word):
        report.build(of_json(result), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unknown_format_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(LoamError, match="did you mean html"):
        report.build(typed(synthetic_results.ad_hoc()), tmp_path, formats=("htm",))


def test_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(LoamError, match=r"cannot be written.*--out"):
        report.build(typed(synthetic_results.ad_hoc()), tmp_path / "file" / "below", formats=("csv",))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere; the case above covers root")
def test_read_only_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(LoamError, match="Permission denied"):
        report.build(typed(synthetic_results.ad_hoc()), tmp_path, formats=("csv",))


def test_a_failed_write_leaves_the_old_report_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written = report.build(typed(synthetic_results.ad_hoc()), tmp_path, formats=("csv",))["csv"]
    before = written.read_bytes()

    def full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:10])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(LoamError, match="No space left on device"):
        report.build(typed(synthetic_results.tour()), tmp_path, formats=("csv",))
    assert written.read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["results.csv"]


def test_command_takes_the_newest_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LoamError, match="loam tour"):
        commands.report()
    folder = tmp_path / "results" / "run-1"
    folder.mkdir(parents=True)
    (tmp_path / "results" / "latest").symlink_to("run-1")
    with pytest.raises(LoamError, match=r"holds no result\.json"):
        commands.report()
    (folder / "result.json").write_text("{")
    with pytest.raises(LoamError, match="is damaged"):
        commands.report()
    (folder / "result.json").write_text("[]")
    with pytest.raises(LoamError, match="not a JSON object"):
        commands.report()
    (folder / "result.json").write_text(json.dumps(synthetic_results.ad_hoc()))
    assert commands.report(json=True)["html"] == folder.resolve() / "report.html"
    document = json.loads(capsys.readouterr().out)
    assert Path(document["report"]["csv"]).is_file()
    assert commands.report(folder, tmp_path / "elsewhere")["md"] == tmp_path / "elsewhere" / "report.md"
