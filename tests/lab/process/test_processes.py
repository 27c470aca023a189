"""What /proc says of processes, and what those of one run used, added up."""

from __future__ import annotations

import resource
from pathlib import Path

from loam_lab.base import processes
from loam_lab.base.processes import Used


def used(user_s: float = 0.0, peak_kib: int = 0, faults: int = 0, switches: int = 0) -> resource.struct_rusage:
    """In the order of struct rusage: user, system, peak, three unused, minor and major faults, six unused, switches."""
    return resource.struct_rusage((user_s, 2 * user_s, peak_kib, 0, 0, 0, faults, 1, 0, 0, 0, 0, 0, 0, switches, 3))


def test_a_second_and_a_third_process_are_added() -> None:
    own = 500 << 20
    own_kib = own >> 10
    total = Used()
    total.add(used(0.5, own_kib + 5_000, faults=7, switches=2), 0.25, own)
    total.add(used(1.5, own_kib + 9_000, faults=70, switches=20), 0.5, own)
    total.add(used(2.0, own_kib + 2_000, faults=700, switches=200), 0.0, own)
    assert (total.user_s, total.system_s, total.run_delay_s) == (4.0, 8.0, 0.75)
    assert (total.faults_minor, total.faults_major) == (777, 3)
    assert (total.switches_voluntary, total.switches_involuntary) == (222, 9)
    assert total.rss_peak_bytes == (own_kib + 9_000) * 1024, "the largest, wherever it comes"


def test_a_peak_that_does_not_exceed_the_labs_own_says_nothing() -> None:
    total = Used()
    total.add(used(peak_kib=500), 0.0, 500 << 10)
    assert total.rss_peak_bytes is None


def test_one_process_of_which_the_kernel_does_not_say_how_long_it_waited_leaves_the_sum_unknown() -> None:
    total = Used()
    for delay_s in (0.25, None, 0.5):
        total.add(used(), delay_s, 0)
    assert total.run_delay_s is None


def test_the_tree_of_a_process_has_the_children_of_all_its_threads(tmp_path: Path) -> None:
    for pid, thread, children in ((10, 10, "11 12"), (10, 15, "13"), (12, 12, "14"), (14, 14, "10")):
        file = tmp_path / str(pid) / "task" / str(thread) / "children"
        file.parent.mkdir(parents=True)
        file.write_text(children)
    assert processes.tree(10, tmp_path) == {10, 11, 12, 13, 14}, "11 and 13 have ended, and 10 came again as a number"


def test_of_a_process_that_nobody_knows_no_waiting_is_told() -> None:
    assert processes.run_delay_s(1 << 30) is None
