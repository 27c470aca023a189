"""The C interface of libloam-tm.so is the one that is promised, and a change of it is found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from loam_lab.base import paths
from loam_lab.setup import build

ROOT = paths.root()

pytestmark = pytest.mark.slow


@pytest.fixture
def abi(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The script as a module, with what it needs."""
    monkeypatch.syspath_prepend(str(ROOT / "packaging"))
    import abi

    build.ensure_targets("release", ["loam-package"])
    if why := abi.lacking():
        pytest.skip(why)
    yield abi


def test_the_interface_is_what_is_promised(abi: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert abi.main([]) == 0, capsys.readouterr().out
    declared = set(re.findall(r"\b(loam_\w+)\(", (ROOT / "include/loam/tm.h").read_text()))
    promised = set(re.findall(r"<elf-symbol name='(loam_\w+)'", abi.PROMISED.read_text()))
    assert len(promised & declared) > 30 and {"loam_tx_begin", "loam_configure"} <= promised


@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("<elf-symbol name='loam_configure'", "<elf-symbol name='loam_configure_all'", "loam_configure"),
        (
            "<class-decl name='loam_config' size-in-bits='448'",
            "<class-decl name='loam_config' size-in-bits='512'",
            "size",
        ),
    ],
    ids=["a function less", "a structure of another size"],
)
def test_a_change_is_found(abi: ModuleType, tmp_path: Path, old: str, new: str, difference: str) -> None:
    text = abi.PROMISED.read_text()
    assert text.count(old) == 1
    (tmp_path / "changed.abi").write_text(text.replace(old, new))
    assert difference in abi.differences(abi.PROMISED, tmp_path / "changed.abi")


def test_a_function_more_is_none(abi: ModuleType, tmp_path: Path) -> None:
    text = abi.PROMISED.read_text()
    line = next(line for line in text.splitlines() if "'loam_version'" in line)
    (tmp_path / "more.abi").write_text(text.replace(line, f"{line}\n{line.replace('loam_version', 'loam_more')}"))
    assert abi.differences(abi.PROMISED, tmp_path / "more.abi") == ""
