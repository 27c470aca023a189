"""Metrics that claims and figures read: those that exist pass, and each that does not is refused by its name."""

from __future__ import annotations

from typing import Any

import claimed
import pytest
from test_claims import A1, claim

from loam_lab.base.errors import LoamError
from loam_lab.judging.claims import check
from loam_lab.model.study import Study

GROUP = {"name": "list", "workload": "intset", "threads": [1], "parameters": {"shift": [5, 4]}}


def band(**of: Any) -> dict[str, Any]:
    return {"kind": "band", "of": {**A1, **of}, "low": 0, "high": 1}


def study(
    *predicates: dict[str, Any], metrics: tuple[str, ...] = (), select: dict[str, Any] | None = None, **group: Any
) -> Study:
    ours = [{"select": select or {"group": "list"}, "rows": "shift", "metrics": list(metrics)}]
    figure = {
        "id": "table 9", "title": "t", "kind": "table", "groups": ["list"], "paper": {"columns": ["a"]}, "ours": ours,
    }  # fmt: skip
    return claimed.study(
        [claim(*predicates)] if predicates else [], groups=[{**GROUP, **group}], paper_figures=[figure]
    )


def test_metrics_of_the_workload_and_of_the_lab_pass() -> None:
    for name in ("", "ops_per_s", "aborts_per_attempt", "room_bytes", "wall_s", "processor_s"):
        check.check(study(band(metric=name), metrics=(name,) if name else ()), {"list": [claimed.DESCRIPTION]})


@pytest.mark.parametrize("source", ["cachegrind", "counters"])
def test_counted_quantities_pass_where_the_group_counts(source: str) -> None:
    for name in check.COUNTED:
        check.check(study(band(source=source, metric=name), **{source: True}), {"list": [claimed.DESCRIPTION]})
    with pytest.raises(
        LoamError, match=rf"claim 000-01: metric=cycles: group list has no {source} runs.*add {source} = true"
    ):
        check.check(study(band(source=source, metric="cycles"), **{source: False}), {"list": [claimed.DESCRIPTION]})
    with pytest.raises(LoamError, match=r"claim 000-01: metric=.*counted quantity"):
        check.check(study(band(source=source), **{source: True}), {"list": [claimed.DESCRIPTION]})


def test_what_simulated_cores_count_needs_no_runs_of_its_own_and_no_other_machine() -> None:
    read = band(source="simulator", metric="l1d_miss_ratio")
    check.check(study(read, machines=["sim:xeon-e5405"]), {"list": [claimed.DESCRIPTION]})
    for on in (["host"], ["sim:xeon-e5405", "host"]):
        with pytest.raises(
            LoamError, match=r"claim 000-01: metric=l1d_miss_ratio: group list does not run on simulated"
        ):
            check.check(study(read, machines=on), {"list": [claimed.DESCRIPTION]})


def test_every_selection_of_a_predicate_is_looked_at() -> None:
    to = {"kind": "ratio_above", "of": A1, "to": {"allocator": "b", "metric": "colour"}}
    trend = {"kind": "trend", "of": {**A1, "metric": "colour"}, "along": "shift", "levels": [5, 4], "direction": "flat"}
    order = {"kind": "order", "of": {"group": "list", "metric": "colour"}, "tiers": [["a"], ["b"]]}
    for wrong in (to, trend, order):
        with pytest.raises(LoamError, match=r"claim 000-01: metric=colour: .*metric of intset in stm"):
            check.check(study(band(), wrong), {"list": [claimed.DESCRIPTION]})


def test_a_figure_is_refused_by_its_name() -> None:
    with pytest.raises(LoamError, match=r"table 9: metric=colour: .*metric of intset in stm"):
        check.check(study(metrics=("ops_per_s", "colour")), {"list": [claimed.DESCRIPTION]})


def test_each_executable_of_a_group_must_have_it() -> None:
    lock = claimed.DESCRIPTION.model_copy(
        update={
            "sync": claimed.DESCRIPTION.sync.model_copy(update={"name": "lock"}),
            "workloads": (
                claimed.DESCRIPTION.workloads[0].model_copy(
                    update={"metrics": claimed.DESCRIPTION.workloads[0].metrics[:2]}
                ),
            ),
        }
    )
    both = {"list": [claimed.DESCRIPTION, lock]}
    check.check(study(band(metric="elapsed_s")), both)
    with pytest.raises(LoamError, match=r"metric=room_bytes: .*metric of intset in lock"):
        check.check(study(band(metric="room_bytes")), both)
    without = lock.model_copy(update={"workloads": ()})
    check.check(study(band(metric="wall_s")), {"list": [without]})
    with pytest.raises(LoamError, match="metric=elapsed_s"):
        check.check(study(band(metric="elapsed_s")), {"list": [without]})


def test_a_group_that_does_not_run_is_not_looked_at() -> None:
    check.check(study(band(metric="colour"), metrics=("colour",)), {})
    second = {**GROUP, "name": "tree", "workload": "kmeans"}
    made = claimed.study([claim(band(metric="ops_per_s"))], groups=[second, GROUP])
    check.check(made, {"list": [claimed.DESCRIPTION]})
    counted = claimed.study(
        [claim(band(source="cachegrind", metric="cycles"))], groups=[second, {**GROUP, "cachegrind": True}]
    )
    check.check(counted, {"list": [claimed.DESCRIPTION]})
