"""Tables of a result on the console: rows that can be told apart, columns that are all there."""

from __future__ import annotations

from typing import Any

import pytest
from typed import typed

from loam_lab.base import console
from loam_lab.commands.run import tables

RATIO = {"estimate": 0.5, "low": 0.4, "high": 0.6}
LONG = "design:base:return-to=owner:cache=0"


def contrast(what: str, factor: str, sync: str, threads: int, **parameters: Any) -> dict[str, Any]:
    return {
        "what": what, "factor": factor, "sync": sync, "threads": threads, "workload": "queue", "machine": "host",
        "parameters": parameters, "allocator": "glibc", "verdict": "worse", "rough": False, **RATIO,
    }  # fmt: skip


def result(**more: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"remember": "", "headlines": [], "cells": [], "contrasts": [], "failures": []}
    return {
        **empty,
        "units": {"queue": {"elements": "1", "elements=*": "{} elements"}},
        "machines": {"host": {}},
        **more,
    }


def cell(copy: int) -> dict[str, Any]:
    speed = {"estimate": 1e6, "low": 0.9e6, "high": 1.1e6, "unit": "1/s"}
    factors = {"workload": "queue", "allocator": LONG, "sync": "server", "threads": 1, "machine": "host"}
    return {
        "factors": factors, "parameters": {}, "copy": copy, "runs": 6, "metrics": {"ops_per_s": speed}, "blame": None,
        "ratio_to_baseline": RATIO if copy else None, "verdict": "inconclusive" if copy else "baseline",
    }  # fmt: skip


@pytest.fixture(autouse=True)
def _fresh_console() -> None:
    console.out.cache_clear()


def _lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_no_two_contrasts_have_the_same_labels(capsys: pytest.CaptureFixture[str]) -> None:
    tables.show(typed(result(contrasts=[
        contrast("2 threads against 1 thread", "threads", "cc-synch", 2),
        contrast("2 threads against 1 thread", "threads", "server", 2),
        contrast("server against cc-synch", "sync", "server", 1, elements=4),
        contrast("server against cc-synch", "sync", "server", 2, elements=4),
    ])))  # fmt: skip
    rows = [line for line in _lines(capsys) if " against " in line]
    assert len(rows) == len(set(rows)) == 4
    assert any("against 1 thread queue, server glibc" in row for row in rows)
    assert any("queue, 4 elements, 2 threads glibc" in row for row in rows)


@pytest.mark.parametrize("columns", ["80", "120"])
def test_a_long_name_takes_no_column_away(
    columns: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    tables.show(typed(result(baseline=LONG, primary_metrics={"queue": "ops_per_s"}, cells=[cell(0), cell(1)])))
    lines = _lines(capsys)
    head = next(line for line in lines if line.startswith("allocator"))
    assert head.split()[1] == "ops_per_s" and head.endswith("of baseline interval verdict")
    assert any(line.endswith("0.500 0.400–0.600 inconclusive") for line in lines)
