"""Values of several cells side by side, of several copies, and counts of simulated cores: each from the runs that it is of."""

from __future__ import annotations

import claimed
import numpy as np
import pytest

from loam_lab.judging.result import counting
from loam_lab.judging.statistics.data import Campaign
from loam_lab.model.cell import Cell
from loam_lab.model.records import COUNTED


def pair(made: Campaign) -> list[Cell]:
    """The same cell under both allocators."""
    return [cell for cell in made.cells if (cell.threads, cell.parameters) == (1, (("shift", 5),))]


def test_a_block_without_a_positive_value_is_left_out_for_all() -> None:
    def speed(cell: Cell, block: int) -> dict[str, float]:
        nothing = (cell.allocator, block) in (("a", 3), ("b", 5))
        return {"operations": 0.0 if nothing else 100.0 * (block + 1) * (2 if cell.allocator == "b" else 1)}

    made = claimed.campaign(claimed.study([]), speed, blocks=8)
    cells, blocks, values = made.together(pair(made), made.primary(made.cells[0]))
    assert [cell.allocator for cell in cells] == ["a", "b"]
    assert blocks.tolist() == [0, 1, 2, 4, 6, 7]
    assert values.tolist() == [[100.0 * (block + 1), 200.0 * (block + 1)] for block in blocks.tolist()]


def test_who_has_no_positive_value_at_all_is_left_out_alone() -> None:
    made = claimed.campaign(
        claimed.study([]), lambda cell, block: {"operations": 0.0 if cell.allocator == "a" else 5.0}, blocks=3
    )
    cells, blocks, values = made.together(pair(made), made.primary(made.cells[0]))
    assert ([cell.allocator for cell in cells], blocks.tolist()) == (["b"], [0, 1, 2])
    assert np.array_equal(values, np.full((3, 1), 5.0))


def test_each_copy_has_waited_for_itself() -> None:
    made = claimed.campaign(claimed.study([]), lambda cell, block: {"operations": 1.0, "thread_cpu_s": 0.75})
    other = claimed.campaign(claimed.study([]), lambda cell, block: {"operations": 1.0, "thread_cpu_s": 0.5})
    cell = pair(made)[0]
    made.timed[cell.key, 1] = other.timed[cell.key, 0]
    assert [made.waited(cell, copy) for copy in (0, 1, 0)] == pytest.approx([0.25, 0.5, 0.25])


def test_simulated_cores_are_counted_in_the_runs_that_went_well() -> None:
    def counted(operations: float) -> dict[str, float]:
        return {"operations": operations, COUNTED + "misses": 30.0, COUNTED + "accesses": 60.0}

    made = claimed.campaign(claimed.study([]), lambda cell, block: counted(10), blocks=6, simulated=True)
    cut_short = claimed.campaign(claimed.study([]), lambda cell, block: counted(1), blocks=6)
    cell = made.cells[0]
    for block in (0, 3):
        made.runs(cell)[block].state = "failed"
        made.runs(cell)[block].iterations = cut_short.runs(cell)[block].iterations
    (counts,) = counting.of_cell(made, cell)
    assert (counts.l1d_misses, counts.accesses, counts.l1d_miss_ratio) == (3.0, 6.0, 0.5)
