"""The simulation of slices: its rule is the harness's, it finds slices true, and it would notice if they were not."""

from __future__ import annotations

import re

import numpy as np
import pytest

from loam_lab.base import paths
from loam_lab.dev.selfcheck import slices
from loam_lab.dev.selfcheck.slices import SCENARIOS, Scenario


def test_the_rule_has_the_constants_of_the_harness() -> None:
    text = (paths.root() / "workloads/harness/slices.hpp").read_text()
    constants = {name: float(value) for name, value in re.findall(r"(k\w+) = ([\d.]+);", text)}
    assert constants["kWaitedShareMax"] == slices.WAITED_SHARE_MAX
    assert constants["kOverlapMax"] == slices.OVERLAP_MAX
    assert constants["kSlicesMin"] == slices.SLICES_MIN
    assert constants["kKeptShareMin"] == slices.KEPT_SHARE_MIN
    assert "kSliceNs = 1'000'000" in text
    assert pytest.approx(1e-3) == slices.STEP_S * slices.SLICE_STEPS


def test_slices_are_true_where_other_work_comes_and_goes() -> None:
    """A short form: studies are few, so the bound is wider by what chance does to their median."""
    quiet, sleeping, bursts, loop, _ = SCENARIOS
    for row in slices.rows(8, (quiet, sleeping, bursts, loop)):
        assert abs(row.sliced_bias) < slices.BIAS_MAX + 0.007, row
        assert row.sliced_disturbed == 0, row
        assert row.sliced_width < 0.04, row
    (without, _) = slices.rows(6, (bursts,))
    assert without.whole_disturbed > 0.2
    assert without.whole_width > 2 * without.sliced_width


def test_a_rule_that_keeps_waits_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "WAITED_SHARE_MAX", 2.0)
    first, _ = slices.rows(6, (Scenario("bursts", bursts_per_s=8.0),))
    assert first.sliced_width > 0.04


def test_threads_that_never_work_together_are_rated_by_their_own() -> None:
    gone = np.zeros((2, slices.RUN_STEPS), dtype=bool)
    ticks = np.arange(slices.RUN_STEPS) // slices.TICK_STEPS % 2
    gone[0], gone[1] = ticks == 0, ticks == 1
    rate, kept, enough = slices.sliced_rate(np.where(gone, 0.0, slices.STEP_S), gone, gone)
    assert (kept, enough) == (0, False)
    assert rate == pytest.approx(2.0)
