"""The sampler's ranking of lines beside the simulator's: how lines of two runs are matched, and what the table's status is."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import sampled

from loam_lab.base.errors import LoamError
from loam_lab.commands.explain.sharing import run
from loam_lab.dev.selfcheck import exit_status, line_ranks, rank_table, sharing, weighted_lines
from loam_lab.dev.selfcheck.line_ranks import Group, Line, Program, Ranked
from loam_lab.subjects import machines, symbols


def codes(**uses: float) -> Mapping[tuple[str, str], float]:
    """Uses by functions, each of one line of its own."""
    return {(f"{name}.hpp:7", f"{name} {name}.hpp"): count for name, count in uses.items()}


def group(cycles: float, share: float, catches: int = 50, moves: int = 0) -> Group:
    return Group(dict(codes(f=1)), cycles, moves, share=share, catches=catches)


def ranked(*groups: Group, beside: float = 1.0) -> Ranked:
    return Ranked(Program("queue", "mcs"), groups, 1000, beside)


@pytest.mark.parametrize(
    ("one", "other", "rho"),
    [
        ([1, 2, 3], [10, 20, 30], 1.0),
        ([1, 2, 3], [30, 20, 10], -1.0),
        ([1, 2, 3, 4, 5], [1, 2, 3, 5, 4], 0.9),
        ([1, 1, 2], [5, 6, 7], 0.866),  # equal values share the mean of their ranks
        ([1, 1, 1], [1, 2, 3], 0.0),
    ],
)
def test_the_rank_correlation_is_spearmans(one: Sequence[float], other: Sequence[float], rho: float) -> None:
    assert line_ranks.spearman(one, other) == pytest.approx(rho, abs=1e-3)


def test_times_that_hardly_differ_are_not_told_apart() -> None:
    assert line_ranks.tied([100, 300, 109, 118, 200]) == [100, 300, 100, 100, 200]
    assert ranked(group(100, 0.1), group(105, 0.2), group(300, 0.3)).rho is None, "two ranks are no ranking"
    assert ranked(group(100, 0.1), group(200, 0.2), group(300, 0.3)).rho == pytest.approx(1.0)
    # A group that too few watches caught is not named by the sampler.
    assert ranked(group(100, 0.1), group(200, 0.2), group(300, 0.3, catches=2)).rho is None


def test_moves_are_ranked_beside_the_times_of_all_groups() -> None:
    waits = ranked(group(300, 0.1, moves=5), group(200, 0.2, 0, moves=50), group(100, 0.3, moves=20))
    assert waits.rho is None and waits.rho_of_moves == pytest.approx(-0.5)
    assert ranked(group(300, 0.1, moves=5), group(100, 0.2, moves=4)).rho_of_moves is None


def test_the_simulators_lines_have_their_times_and_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    line = {"address": 64, "transfers": 9, "true_sharing": 0, "false_sharing": 0, "aborts": 0, "cores": [], "sites": []}
    monkeypatch.setattr(symbols, "places", lambda *_: {})
    (one,) = line_ranks.simulated_lines(json.dumps({"lines": [{**line, "shared_cycles": 70}]}), Path())
    assert (one.weight, one.moves) == (70, 9)
    host = machines.find(machines.HOST)
    assert line_ranks.timing(host).environment == {**host.environment, "LOAM_SIM_LINE_TIMES": "200000"}


def test_lines_are_alike_by_the_code_that_uses_them() -> None:
    assert line_ranks.alike(codes(a=3, b=1), codes(a=6, b=2)) == pytest.approx(1.0)
    assert line_ranks.alike(codes(a=1), codes(b=1)) == 0.0
    # The same function one line off, as a sample told too late: half.
    late = {("a.hpp:9", "a a.hpp"): 1.0}
    assert line_ranks.alike(codes(a=1), late) == pytest.approx(0.5)


def test_the_hosts_lines_go_to_the_group_of_the_same_code() -> None:
    moved = [
        Line(400, codes(lock=1), moves=7), Line(100, codes(read=1, write=1), moves=2), Line(90, codes(read=2, write=2), moves=3),
        Line(3, codes(setup=1)), Line(50, {}),
    ]  # fmt: skip
    lines = [
        Line(30, codes(lock=5), 20), Line(10, codes(write=3, read=2), 8), Line(5, codes(write=1), 4),
        Line(9, codes(other=1), 9),
    ]  # fmt: skip
    groups = line_ranks.matched(moved, lines, 1000)
    assert [(one.cycles, one.moves, one.lines, one.share, one.catches) for one in groups] == [
        (400, 7, 1, pytest.approx(0.03), 20), (190, 5, 2, pytest.approx(0.015), 12),
    ]  # fmt: skip
    assert groups[0].name == "lock (lock.hpp:7)"
    assert line_ranks.matched([], lines, 1000) == []


def test_every_program_that_has_a_correlation_must_reach_it() -> None:
    good = ranked(group(100, 0.1), group(200, 0.2), group(300, 0.3))
    bad = ranked(group(100, 0.3), group(200, 0.2), group(300, 0.1))
    none = ranked(group(100, 0.1))
    assert rank_table.status([good, none]) == exit_status.HOLDS
    assert rank_table.status([good, bad]) == exit_status.FAILS
    assert rank_table.status([none]) == exit_status.TOO_FEW
    assert json.loads(json.dumps(rank_table.document([bad])))["programs"][0]["rank_correlation"] == pytest.approx(-1.0)


def test_a_wrong_program_is_told_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LoamError, match="is none of weighted, queue, stack"):
        sharing.main(["--ranks", "--program", "quere"])

    def refuse() -> None:
        raise LoamError("explain", None, "no events")

    monkeypatch.setattr(run, "check_machine", refuse)
    assert sharing.main(["--ranks"]) == exit_status.NOT_RUN


@pytest.mark.alone
@pytest.mark.exhaustive
def test_lines_that_are_used_by_known_weights_are_ranked_so() -> None:
    """On the host by shares of time, on the simulated machine by time and moves: all as often as the program uses them."""
    sampled.skip_without_events()
    sharing.program()
    ranking = weighted_lines.ranked(5.0)
    names = [one.name.partition(" ")[0] for one in ranking.both]
    assert names == ["use_first", "use_second", "use_third", "use_fourth", "use_fifth"]
    assert ranking.rho is not None and ranking.rho >= line_ranks.LEAST_RHO
    assert ranking.rho_of_moves == pytest.approx(1.0)
