"""What is built for workloads that run without a synchronisation's name: no more than the one that runs them."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import builds
from loam_lab.setup import build
from loam_lab.subjects import workloads

# What each synchronisation offers, once it is built.
OFFERED = {"auto": {"intset", "kmeans"}, "none": {"larson", "threadtest"}, "gc-heap": {"gcbench"}}


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """The targets in the order in which they are asked for; None stands for all."""
    asked: list[str | None] = []

    def ensure_built(targets: Sequence[str] | None, preset: str) -> None:
        assert preset == "release"
        asked.extend([None] if targets is None else targets)

    def default_sync(workload: str, preset: str, defaults: Sequence[str]) -> str | None:
        there = OFFERED if None in asked else OFFERED.keys() & asked
        return next((name for name in (*defaults, *OFFERED) if name in there and workload in OFFERED[name]), None)

    monkeypatch.setattr(build, "ensure_built", ensure_built)
    monkeypatch.setattr(workloads, "default_sync", default_sync)
    return asked


@pytest.mark.parametrize(
    ("workload", "sync", "targets"),
    [
        ("threadtest", "none", ["none"]),
        ("intset", "auto", ["none", "auto"]),
        ("gcbench", "gc-heap", ["none", "auto", None]),
        ("intsett", None, ["none", "auto", None]),
    ],
)
def test_a_default_is_built_only_where_no_smaller_one_has_the_workload(
    built: list[str | None], workload: str, sync: str | None, targets: list[str | None]
) -> None:
    assert builds.default_sync(workload) == sync
    assert built == targets


def test_what_is_built_of_an_older_revision_is_no_default(monkeypatch: pytest.MonkeyPatch) -> None:
    def describe(subject: SimpleNamespace) -> SimpleNamespace:
        if subject.name == "auto":
            raise LoamError("auto", None, "--describe: written by schema 1")
        return SimpleNamespace(workload=lambda name: name in OFFERED[subject.name])

    subjects = {name: SimpleNamespace(name=name, missing=lambda: None) for name in OFFERED}
    monkeypatch.setattr(workloads, "subjects_of", lambda preset: subjects)
    monkeypatch.setattr(workloads, "describe", describe)
    assert workloads.default_sync("threadtest") == "none"
    assert workloads.default_sync("intset") is None
