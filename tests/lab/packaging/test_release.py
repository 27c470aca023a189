"""packaging/release.py: what a release holds, its sums, and that a part which is not made the same twice is named."""

from __future__ import annotations

import gzip
import hashlib
import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from loam_lab.base import paths
from loam_lab.campaign.fleet import archive

ROOT = paths.root()


@pytest.fixture
def release(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The script as a module, which finds build.py beside it."""
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    import release

    monkeypatch.setattr(release, "check_committed", lambda: None)
    yield release
    for name in ("release", "build"):
        sys.modules.pop(name, None)


def test_the_sources_are_what_git_knows_in_one_folder_the_same_each_time(release: Any, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        release.sources(tmp_path / name)
    (file,) = (tmp_path / "one").iterdir()
    content = file.read_bytes()
    assert content == (tmp_path / "two" / file.name).read_bytes()
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as opened:
        assert opened.getnames() == [f"{release.NAME}/{name}" for name in (*archive.names(), paths.SENT)]


def test_sums_are_of_all_files_and_a_second_making_that_differs_is_named(
    release: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: list[Path] = []

    def steady(out: Path) -> None:
        (out / "steady.deb").write_text("always the same")

    def unsteady(out: Path) -> None:
        made.append(out)
        (out / "unsteady.whl").write_text(f"made {len(made)} times")

    monkeypatch.setattr(release, "PARTS", {"debian": steady})
    assert release.main([str(tmp_path / "first"), "--twice"]) == 0
    assert "made twice: 1 files, all the same" in capsys.readouterr().out
    digest = hashlib.sha256(b"always the same").hexdigest()
    assert (tmp_path / "first" / release.SUMS).read_text() == f"{digest}  steady.deb\n"
    monkeypatch.setattr(release, "PARTS", {"debian": steady, "wheel": unsteady})
    assert release.main([str(tmp_path / "second"), "--twice"]) == 1
    assert "made twice: unsteady.whl differ" in capsys.readouterr().out
    assert made[0] != made[1]


def test_a_folder_with_files_is_refused_before_anything_is_made(
    release: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "kept").write_text("mine")
    with pytest.raises(SystemExit) as ended:
        release.main([str(tmp_path)])
    assert ended.value.code == 2
    assert "is not empty" in capsys.readouterr().err
    assert (tmp_path / "kept").read_text() == "mine"


def test_each_part_is_tried_in_the_empty_debian(release: Any) -> None:
    assert set(release.attempts("x.whl")) == {"sums", *release.PARTS}
