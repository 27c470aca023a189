"""Instructions between accesses: charged where the machine asks for it and the preset has them counted, and said so."""

from __future__ import annotations

import pytest
from simulating import MACHINE, built, start

from loam_lab.subjects import simulated

PROGRAM = "simulated-blocks"
WORDS = 512
# Three shifts and three exclusive ors.
INSTRUCTIONS_OF_ROUND = 6
# GCC estimates before it optimises: what a processor executes is 0.7 to 0.8 of it.
ESTIMATE = (0.9, 1.6)
COUNTED = {**MACHINE, "core.costs": "blocks", "core.instruction_cycles": "1"}


def cycles(machine: dict[str, str], preset: str) -> tuple[dict[str, int], str]:
    """What the program printed, and how it says that instructions are charged."""
    done = start(PROGRAM, WORDS, machine=machine, preset=preset)
    assert done.returncode == 0, done.stderr
    numbers, costs = done.stdout.splitlines()
    return {name: int(value) for name, _, value in (word.partition("=") for word in numbers.split())}, costs


def test_accesses_alone_cost_the_same_whatever_lies_between_them() -> None:
    measured, costs = cycles({**MACHINE}, simulated.PRESET)
    assert costs == "per access"
    assert measured["few"] == measured["many"] >= WORDS


def test_a_preset_that_counts_nothing_says_so() -> None:
    measured, costs = cycles(COUNTED, simulated.PRESET)
    assert costs == "per access"
    assert measured["few"] == measured["many"]


@pytest.mark.timeout(900)
def test_instructions_between_accesses_cost_what_the_machine_says() -> None:
    built(PROGRAM, simulated.PRESET_BLOCKS)
    measured, costs = cycles(COUNTED, simulated.PRESET_BLOCKS)
    if costs == "per access":
        pytest.skip("the headers of the compiler's plug-ins are missing (gcc-12-plugin-dev)")
    between = WORDS * measured["rounds"] * INSTRUCTIONS_OF_ROUND
    assert ESTIMATE[0] * between < measured["many"] - measured["few"] < ESTIMATE[1] * between
    twice, _ = cycles({**COUNTED, "core.instruction_cycles": "2"}, simulated.PRESET_BLOCKS)
    assert twice["many"] - twice["few"] == pytest.approx(2 * (measured["many"] - measured["few"]), rel=0.01)


@pytest.mark.timeout(900)
def test_a_machine_that_does_not_ask_for_it_is_charged_by_the_access() -> None:
    built(PROGRAM, simulated.PRESET_BLOCKS)
    measured, costs = cycles({**MACHINE}, simulated.PRESET_BLOCKS)
    assert costs == "per access"
    assert measured["few"] == pytest.approx(measured["many"], rel=0.02)


def test_the_lab_takes_the_preset_that_the_machine_needs() -> None:
    assert simulated.Simulated("x", "", COUNTED).preset() == simulated.PRESET_BLOCKS
    assert simulated.Simulated("x", "", MACHINE).preset() == simulated.PRESET
