"""The study `programs`: all of paper 004 is in it, and its quick form fits into 25 minutes on two cores."""

from __future__ import annotations

from loam_lab.model import studies

# Of one run of the quick form under glibc, in seconds: processor time where nothing waits, else how long it takes.
SECONDS = {
    "python3": 0.18, "python3-tests": 8, "perl": 0.31, "lua": 0.44, "node": 0.42, "java": 2.4, "redis-server": 2,
    "postgres": 1.5, "awk": 0.03, "sort": 0.05, "tar": 0.05, "gcc": 1.3, "gxx": 0.26, "git": 0.26, "sqlite3": 0.15,
    "gs": 0.23, "stress-ng": 2, "cfrac": 0.03, "espresso": 0.03, "lua-build": 0.14, "gs-pages": 0.3, "redis-lists": 1,
    "larson": 0.3, "cfrac-original": 4, "espresso-original": 5,
}  # fmt: skip
# The process that starts a program, its proof and its journal line.
START_S = 0.25
# A counting run takes longer than a timed one, and a workload with operations has two.
COUNTED = 1.3


def test_the_quick_form_takes_less_than_25_minutes() -> None:
    study, _ = studies.find("programs")
    quick = study.quick(6)
    seconds = 0.0
    for group in quick.groups:
        levels = 1
        for values in group.levels().values():
            levels *= len(values)
        one_s, cells = SECONDS[group.workload] + START_S, len(quick.allocators_of(group))
        seconds += levels * (cells + 1) * quick.blocks_of(group) * one_s
        if "profile" in quick.purposes_of(group):
            seconds += levels * cells * COUNTED * one_s * (2 if group.workload == "larson" else 1)
    assert seconds < 25 * 60
    assert quick.budget_s is not None and quick.budget_s < 25 * 60


def test_the_paper_is_whole() -> None:
    study, _ = studies.find("programs")
    assert [claim.id for claim in study.claims] == [f"004-{number:02}" for number in range(1, 15)]
    assert [figure.id for figure in study.paper_figures] == [f"figure {number}" for number in range(1, 8)]
    profiled = {group.name for group in study.groups if "profile" in study.purposes_of(group)}
    read = {
        selection.group
        for claim in study.claims
        for predicate in claim.predicates
        for selection in predicate.selections()
        if selection.source == "profile"
    }
    assert read <= profiled
