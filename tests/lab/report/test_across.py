"""The report's section on machines: a map per allocator, who is best where, and the answer in words."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from several_machines import result
from synthetic_results import tour
from typed import typed

from loam_lab.judging.across import judge, pooling
from loam_lab.presenting.report import across, builder, view

ALIKE = {"fast": 1.2, "slow": 0.8}


def judged(**effects: dict[str, float]) -> dict[str, Any]:
    made = result(effects, cases=3)
    made["across_machines"] = judge.of_result(typed(made))
    return made


def page(made: dict[str, Any], folder: Path) -> str:
    return builder.build(typed(made), folder, formats=["html", "md", "svg"])["html"].read_text()


def test_the_page_answers_for_each_machine_with_a_map_per_allocator(tmp_path: Path) -> None:
    made = judged(alpha=ALIKE, beta={"fast": 0.9, "slow": 0.8}, gamma=ALIKE)
    text = page(made, tmp_path)
    assert '<a href="#machines">Machines</a>' in text
    assert "No. The ranking of allocators does not hold across alpha, beta and gamma" in text
    maps = re.findall(r'<figure class="map">.*?</figure>', text, re.DOTALL)
    assert len(maps) == 3, "the best, fast, slow"
    assert maps[1].count("≠") >= 3, "fast differs in each of three cases"
    assert "≠" not in maps[2]
    assert {len(re.findall("<rect", drawn)) for drawn in maps} == {9}
    assert "w, size\u00a0=\u00a01, stm, 1\u00a0thread, beta: plain &gt; fast &gt; slow" in maps[0]
    assert "Allocators that change places" in text
    assert (tmp_path / "figures/machines.svg").is_file()
    assert "Allocators that change places" in (tmp_path / "report.md").read_text()


def test_one_machine_has_no_such_section(tmp_path: Path) -> None:
    text = page(tour(), tmp_path)
    assert 'id="machines"' not in text


def test_declared_machines_show_their_comparison(tmp_path: Path) -> None:
    made = judged(alpha=ALIKE, beta=ALIKE)
    made["identical"] = pooling.of_result(typed(made), (("alpha", "beta"),))
    text = page(made, tmp_path)
    assert "alpha and beta were declared identical, and their A/A comparison passes" in text
    assert "Blocks of alpha and beta together" in text
    apart = result({"alpha": ALIKE, "beta": ALIKE}, speed={"beta": 2.0})
    apart["identical"] = pooling.of_result(typed(apart), (("alpha", "beta"),))
    ((sentence, tables),) = across.identical(view.read(typed(apart)))
    assert "does not pass: nothing is pooled. Plain on beta has" in sentence
    assert [table.caption for table in tables] == ["The baseline on machines that were declared identical"]


@pytest.mark.parametrize("machine", ["alpha", "beta"])
def test_a_headline_stands_at_the_machine_that_it_is_of(machine: str) -> None:
    """Two machines have the same cases; each has a best allocator of its own."""
    from loam_lab.presenting.report import findings

    made = judged(alpha=ALIKE, beta={"fast": 0.9, "slow": 1.3})
    best = {"alpha": "fast", "beta": "slow"}
    made["headlines"] = [
        {
            "workload": "w", "sync": "stm", "machine": name, "threads": 1, "parameters": {}, "best": best[name], "worst": "plain",
            "ratio": {"estimate": 1.2, "low": 1.1, "high": 1.3}, "verdict": "better", "text": "",
        }
        for name in best
    ]  # fmt: skip
    answers = [answer for answer in findings.answers(view.read(typed(made))) if answer.group.machine == machine]
    assert {answer.best for answer in answers} == {best[machine]}
