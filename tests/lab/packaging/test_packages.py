"""The wheel: what is in it, that it installs, and that the installed `loam` finds what it needs.

The long forms install it from the package index into an empty environment, and measure with it: ./loam test --all
"""

from __future__ import annotations

import os
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest
from packaged import check_tour, run

import loam_lab
from loam_lab.base import paths
from loam_lab.campaign.fleet import archive

ROOT = paths.root()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, ROOT / "packaging/build.py", "wheel", folder, folder=ROOT)
    (file,) = folder.glob("*.whl")
    return file


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel alone; what it depends on is lent by ours."""
    folder = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", folder, folder=folder)
    run(folder / "bin/pip", "install", "-q", "--no-deps", "--no-index", wheel, folder=folder)
    lent = folder / "lent"
    lent.mkdir()
    for entry in Path(sysconfig.get_path("purelib")).iterdir():
        if entry.name not in ("loam.pth", "pip", "setuptools"):
            (lent / entry.name).symlink_to(entry)
    (site,) = (folder / "lib").glob("python3*/site-packages")
    (site / "lent.pth").write_text(f"{lent}\n")
    return folder


@pytest.mark.slow
def test_the_wheel_holds_the_lab_and_the_sources_of_what_it_builds(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as opened:
        names = set(opened.namelist())
        content = opened.open("loam_lab/sources.tar")
        with tarfile.open(fileobj=content) as sources:
            packed = sources.getnames()
    modules = {file.relative_to(ROOT / "lab").as_posix() for file in (ROOT / "lab/loam_lab").rglob("*.py")}
    assert modules <= names
    assert {name.split("/")[0] for name in names if ".dist-info/" not in name} == {"loam_lab"}, (
        "no other top-level module"
    )
    for needed in (
        "loam_lab/cli/welcome.txt",
        "loam_lab/presenting/site/assets/search.js",
        "loam_lab/presenting/report/templates/report.js",
    ):
        assert needed in names
    assert packed == [*(name for name in archive.names() if not name.startswith("docs/")), paths.SENT]


@pytest.mark.slow
def test_the_installed_wheel_starts_and_finds_its_studies(installed: Path, tmp_path: Path) -> None:
    loam = installed / "bin/loam"
    own = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": ""}
    assert f"loam {loam_lab.__version__}" in run(loam, "--version", folder=tmp_path, **own)
    assert "Usage" in run(loam, "--help", folder=tmp_path, **own)
    assert "tour" in run(loam, "list", "studies", folder=tmp_path, **own)
    assert "jemalloc" in run(loam, "list", "allocators", folder=tmp_path, **own)
    (tree,) = (tmp_path / "cache/loam/sources").iterdir()
    assert os.access(tree / "loam", os.X_OK)
    run(installed / "bin/pip", "uninstall", "-q", "-y", "loam-lab", folder=tmp_path)
    assert not loam.exists()


@pytest.mark.exhaustive
@pytest.mark.timeout(2000)
def test_the_installed_wheel_builds_and_measures(wheel: Path, installed: Path, tmp_path: Path) -> None:
    run(installed / "bin/pip", "install", "-q", "--no-deps", "--no-index", wheel, folder=tmp_path)
    words = ("run", "threadtest", "--allocator", "glibc,jemalloc", "--blocks", "6", "-p", "duration_ms=5")
    own = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": ""}
    output = run(installed / "bin/loam", *words, folder=tmp_path, seconds=1800, **own)
    assert "jemalloc" in output
    assert (tmp_path / "results/latest/report.html").is_file()


@pytest.mark.exhaustive
@pytest.mark.timeout(3600)
def test_the_wheel_installs_from_the_index_into_an_empty_environment_and_takes_the_tour(
    wheel: Path, tmp_path: Path
) -> None:
    """With what it depends on, as `pip install` finds it: nothing of this checkout takes part."""
    venv = tmp_path / "empty"
    run(sys.executable, "-m", "venv", venv, folder=tmp_path)
    run(venv / "bin/pip", "install", "-q", wheel, folder=tmp_path, seconds=900)
    own = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONPATH": ""}
    assert f"loam {loam_lab.__version__}" in run(venv / "bin/loam", "--version", folder=tmp_path, **own)
    output = run(venv / "bin/loam", "list", "allocators", folder=tmp_path, **own)
    assert "glibc" in output and "jemalloc" in output
    assert run(venv / "bin/pip", "check", folder=tmp_path).strip() == "No broken requirements found."
    run(venv / "bin/loam", "tour", "--out", "first", folder=tmp_path, seconds=2500, **own)
    check_tour(tmp_path / "first")
    run(venv / "bin/pip", "uninstall", "-q", "-y", "loam-lab", folder=tmp_path)
    left = [file for file in venv.rglob("*loam*") if "__pycache__" not in file.parts]
    assert left == []
