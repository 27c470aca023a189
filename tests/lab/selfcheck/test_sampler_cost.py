"""What programs take under the sampler: the order of the runs, the limits, a few real runs."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.dev.selfcheck import cost_table, exit_status, line_ranks, sharing
from loam_lab.dev.selfcheck.cost_table import Cost
from loam_lab.dev.selfcheck.line_ranks import Program

QUEUE = Program("queue", "mcs")


def cost(ratio: float) -> Cost:
    return Cost(QUEUE, [1.0] * 5, [ratio] * 5)


def test_runs_alternate_in_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[bool] = []

    def wall_s(program: Program, command: object, *, watched: bool) -> float:
        order.append(watched)
        return 2.0 + 0.5 * watched + len(order)

    monkeypatch.setattr(cost_table, "_wall_s", wall_s)
    monkeypatch.setattr(
        line_ranks, "asked", lambda program, machine: SimpleNamespace(command=lambda: [program.workload])
    )
    one = cost_table.measured(QUEUE, 3)
    assert order == [True, False, False, True, True, False]
    assert (one.under_s, one.without_s) == ([3.5, 6.5, 7.5], [4.0, 5.0, 8.0])


def test_median_and_largest_have_limits() -> None:
    assert cost_table.status([cost(1.04), cost(1.02), cost(1.15)]) == exit_status.HOLDS
    assert cost_table.status([cost(1.04), cost(1.06), cost(1.06)]) == exit_status.FAILS
    assert cost_table.status([cost(1.0), cost(1.0), cost(1.16)]) == exit_status.FAILS
    written = json.loads(json.dumps(cost_table.document([cost(1.04)])))
    assert written["programs"][0]["ratio"]["estimate"] == pytest.approx(1.04)


def test_a_real_program_is_timed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    short = Program("threadtest", "none", parameters={"operations": "200000"})
    monkeypatch.setattr(cost_table, "PROGRAMS", (short,))
    status = cost_table.compare([], 1, as_json=True)
    printed = capsys.readouterr()
    if status == exit_status.NOT_RUN:
        pytest.skip(printed.err)
    assert status == exit_status.TOO_FEW
    (one,) = json.loads(printed.out)["programs"]
    assert one["workload"] == "threadtest" and one["without_s"][0] > 0 and one["under_s"][0] > 0


def test_a_program_that_fails_is_an_error() -> None:
    with pytest.raises(LoamError, match="ended with status 1"):
        cost_table._wall_s(QUEUE, ["/bin/false"], watched=False)


def test_one_check_at_a_time() -> None:
    with pytest.raises(LoamError, match="are two checks"):
        sharing.main(["--ranks", "--cost"])
    with pytest.raises(LoamError, match="is none of queue, stack"):
        sharing.main(["--cost", "--program", "redis"])
