"""Layers within runtime/tm and runtime/gc: files include those of earlier layers and of their own.

runtime/layers.txt has the layers of whole folders; test_style.py checks those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# From the lowest layer to the highest: files without their ending, or folders; of two that fit the longer one counts.
LAYERS: Mapping[str, Sequence[Sequence[str]]] = {
    "runtime/tm": (
        ("abort_cause", "types", "process"),
        ("records/mapping", "logs/log", "logs/log_space", "logs/words"),
        ("descriptor", "runtime", "algorithm", "algorithm_list"),
        ("records",),
        ("blame",),
        ("logs/write_set", "logs/undo_log"),
        ("hardware/availability", "hardware/lent", "hardware/policy"),
        ("attempts", "access"),
        ("logs",),
        ("algorithms/parts",),
        ("algorithms",),
        ("hardware",),
        ("tm",),
        ("c",),
    ),
    "runtime/gc": (("",), ("logs",), ("tx", "checking"), ("gc",)),
}
# Sources that put their whole folder together: what happens at a start, an end and a fork, and when the table changes.
ASSEMBLE = {"runtime/tm/process.cpp", "runtime/tm/runtime.cpp", "runtime/tm/records/tuning.cpp"}


def includes(folder: str) -> dict[str, list[str]]:
    """The files of a folder, each with those of the folder that it includes; generated ones are left out."""
    included = {}
    for file in sorted((ROOT / folder).rglob("*.[hc]pp")):
        named = re.findall(rf'#include "{folder}/([^"]+)"', file.read_text())
        included[str(file.relative_to(ROOT / folder))] = [name for name in named if (ROOT / folder / name).is_file()]
    return included


def layer(file: str, layers: Sequence[Sequence[str]]) -> int:
    """The place of a file. raises: ValueError if it has none"""
    stem = file.rpartition(".")[0]
    fitting = [
        (len(name), place)
        for place, names in enumerate(layers)
        for name in names
        if stem == name or stem.startswith(f"{name}/") or (not name and "/" not in stem)
    ]
    if not fitting:
        raise ValueError(f"{file} has no layer")
    return max(fitting)[1]


def upward(files: Mapping[str, Sequence[str]], layers: Sequence[Sequence[str]]) -> list[str]:
    return [
        f"{file} includes {other}"
        for file, others in files.items()
        for other in others
        if layer(other, layers) > layer(file, layers)
    ]


@pytest.mark.parametrize("folder", LAYERS)
def test_includes_point_one_way(folder: str) -> None:
    files = {file: others for file, others in includes(folder).items() if f"{folder}/{file}" not in ASSEMBLE}
    assert len(files) > 20
    assert upward(files, LAYERS[folder]) == []


@pytest.mark.parametrize("folder", LAYERS)
def test_each_layer_has_files(folder: str) -> None:
    used = {layer(file, LAYERS[folder]) for file in includes(folder)}
    assert used == set(range(len(LAYERS[folder])))


@pytest.mark.parametrize("file", sorted(ASSEMBLE))
def test_what_puts_a_folder_together_is_there_and_has_a_reason_to_be_named(file: str) -> None:
    folder = "/".join(file.split("/")[:2])
    name = file.removeprefix(f"{folder}/")
    assert upward({name: includes(folder)[name]}, LAYERS[folder]), f"{file} points one way: take it out of ASSEMBLE"


def test_an_arrow_that_points_up_is_seen() -> None:
    layers = (("", "b/low"), ("a",), ("b",))
    assert upward({"x.hpp": ["a/y.hpp"], "a/y.hpp": ["x.hpp", "a/z.hpp", "b/low.hpp"], "a/z.cpp": ["b/w.hpp"]}, layers) == [
        "x.hpp includes a/y.hpp", "a/z.cpp includes b/w.hpp",
    ]  # fmt: skip
    with pytest.raises(ValueError, match=r"c/x\.hpp has no layer"):
        layer("c/x.hpp", layers)
