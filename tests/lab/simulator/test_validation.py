"""Cost and misses of small programs, through the compiler's hooks, against numbers derived by hand."""

from __future__ import annotations

import pytest
from simulating import MACHINE, numbers

from loam_lab.subjects import simulated

ACCESS = 2  # core.access_cycles


@pytest.mark.parametrize(
    ("kib", "cycles"), [(16, 3), (32, 3), (256, 17), (768, 17), (4096, 41), (32768, 243)],
    ids=["half of l1", "all of l1", "l2", "most of l2", "l3", "memory"],
)  # fmt: skip
def test_a_ladder_of_sizes_costs_what_the_levels_are_configured_to(kib: int, cycles: int) -> None:
    counts = numbers("simulated-memory", "ladder", kib * 1024)
    assert counts["per_access"] == pytest.approx(cycles + ACCESS, rel=0.01)


def test_a_line_more_than_the_first_level_holds_misses_each_time() -> None:
    machine = {**MACHINE, "l1.bytes": "4096", "l1.ways": "64"}  # fully associative: the order does not matter
    assert numbers("simulated-memory", "ladder", 4096, machine=machine)["misses"] == 0
    assert numbers("simulated-memory", "ladder", 4096 + 64, machine=machine)["misses"] == 65


def test_a_hand_over_moves_the_flag_and_the_word() -> None:
    rounds = 500
    counts = numbers("simulated-memory", "ping-pong", rounds)
    assert counts["true_sharing"] == pytest.approx(2 * 2 * rounds, rel=0.01)
    assert counts["false_sharing"] == 0


@pytest.mark.parametrize(("stride", "sharers"), [(8, 8), (16, 4), (32, 2)])
def test_counters_in_one_line_are_false_sharing(stride: int, sharers: int) -> None:
    times = 500
    counts = numbers("simulated-memory", "counters", stride, times)
    # Each of the sharers loses the line to the next one between its own additions.
    assert counts["false_sharing"] > 0.9 * 8 * times * (1 if sharers > 2 else 0.5) * 0.9
    assert counts["true_sharing"] == 0


def test_counters_in_lines_of_their_own_never_meet() -> None:
    counts = numbers("simulated-memory", "counters", 64, 500)
    assert counts["false_sharing"] == counts["true_sharing"] == counts["upgrades"] == 0


def test_false_sharing_costs_as_on_real_machines_tens_of_times() -> None:
    apart, together = (numbers("simulated-memory", "counters", stride, 500)["cycles"] for stride in (64, 8))
    assert together > 20 * apart


@pytest.mark.parametrize("times", [1000, 20000])
@pytest.mark.parametrize("stride", [0, 8], ids=["one word", "one line"])
def test_stores_of_eight_cores_into_one_line_cost_the_published_factor(stride: int, times: int) -> None:
    """And they cost the same, however long the program runs."""
    machine = simulated.registry()["xeon-e5405"].values
    alone = numbers("simulated-memory", "stores", 1, 64, times, machine=machine)["cycles"]
    together = numbers("simulated-memory", "stores", 8, stride, times, machine=machine)["cycles"]
    assert 3 < together / alone < 20


def test_stores_of_a_pair_of_cores_into_one_line_cost_less_than_those_of_all() -> None:
    machine = simulated.registry()["xeon-e5405"].values
    alone, pair, all_of_them = (
        numbers("simulated-memory", "stores", cores, 8, 5000, machine=machine)["cycles"] for cores in (1, 2, 8)
    )
    assert 1.5 * alone < pair < all_of_them / 2


def test_stores_of_eight_cores_into_lines_of_their_own_cost_what_they_cost_alone() -> None:
    machine = simulated.registry()["xeon-e5405"].values
    alone, apart = (
        numbers("simulated-memory", "stores", cores, 64, 20000, machine=machine)["cycles"] for cores in (1, 8)
    )
    assert apart == pytest.approx(alone, rel=0.01)


def test_an_atomic_addition_moves_its_line_once() -> None:
    times = 500
    counts = numbers("simulated-memory", "fetch-add", times)
    assert counts["true_sharing"] == pytest.approx(8 * times, rel=0.04)
    assert counts["upgrades"] == 0


def test_readers_share_a_line() -> None:
    counts = numbers("simulated-memory", "read-shared", 500)
    assert counts["true_sharing"] + counts["false_sharing"] < 40
    assert counts["invalidations"] < 20
