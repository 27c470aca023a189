"""The two makers of operator mutants: what they change, what they remember, and what is judged again."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mutants"))
import operators_lab
import operators_runtime
import sampling
from operators_runtime import Journal, Operator

SOURCE = """#include <less>
namespace loam {
int f(int* a, int b) {
  if (a != nullptr && b <= 3) return -b;
  static_assert(1 + 1 == 2);
  note(a, "b + c");  // d + e
  b += !b ? 10 : true;
  ++b;
  const auto c = g(b);
  return b;
}
}  // namespace loam
"""


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A made-up source whose test is a made-up file."""
    (tmp_path / "one.cpp").write_text(SOURCE)
    (tmp_path / "one_test.cpp").write_text("as it was")
    monkeypatch.setattr(operators_runtime, "ROOT", tmp_path)
    monkeypatch.setattr(operators_runtime, "FILES", {"one.cpp": ("one_test",)})
    monkeypatch.setattr(operators_runtime, "source_of_test", lambda test: tmp_path / f"{test}.cpp")
    return "one.cpp"


def test_every_operator_constant_negation_and_call_is_changed_once(file: str) -> None:
    changed = [(one.line, one.after) for one in operators_runtime.mutants_of(file)]
    assert changed == [
        (4, "if (a == nullptr && b <= 3) return -b;"), (4, "if (a != nullptr || b <= 3) return -b;"),
        (4, "if (a != nullptr && b < 3) return -b;"), (4, "if (a != nullptr && b >= 3) return -b;"),
        (4, "if (a != nullptr && b <= 4) return -b;"),
        (6, ";  // d + e"),
        (7, "b -= !b ? 10 : true;"), (7, "b += b ? 10 : true;"), (7, "b += !b ? 11 : true;"), (7, "b += !b ? 10 : false;"),
        (8, "--b;"),
    ]  # fmt: skip
    for one in operators_runtime.mutants_of(file):
        text = SOURCE[: one.start] + one.new + SOURCE[one.end :]
        assert text.splitlines()[one.line - 1].strip() == one.after


def test_every_file_that_is_mutated_and_each_of_its_tests_is_there() -> None:
    for name, tests in operators_runtime.FILES.items():
        assert operators_runtime.mutants_of(name) or name.endswith(".hpp"), name
        assert all(operators_runtime.source_of_test(test).is_file() for test in tests)


def judged(tmp_path: Path, one: Operator) -> str | None:
    return Journal(tmp_path / "build" / "journal.jsonl").killer(one)


def test_a_later_run_goes_on_where_one_stopped(file: str, tmp_path: Path) -> None:
    first, second, third = operators_runtime.mutants_of(file)[:3]
    journal = Journal(tmp_path / "build" / "journal.jsonl")
    for one, killer in ((first, "one_test"), (second, "-")):
        assert journal.killer(one) is None
        journal.add(one, killer)
        assert journal.killer(one) == judged(tmp_path, one) == killer
    assert judged(tmp_path, third) is None
    with (tmp_path / "build" / "journal.jsonl").open("a") as torn:
        torn.write('{"key": "')
    assert judged(tmp_path, first) == "one_test"


def test_what_survived_is_judged_again_by_other_tests_and_all_of_another_source(file: str, tmp_path: Path) -> None:
    first, second = operators_runtime.mutants_of(file)[:2]
    journal = Journal(tmp_path / "build" / "journal.jsonl")
    journal.add(first, "")
    journal.add(second, "one_test")
    assert (judged(tmp_path, first), judged(tmp_path, second)) == ("", "one_test")
    (tmp_path / "one_test.cpp").write_text("with one more")
    assert (judged(tmp_path, first), judged(tmp_path, second)) == (None, "one_test")
    Journal(tmp_path / "build" / "journal.jsonl").add(first, "one_test")
    assert judged(tmp_path, first) == "one_test"
    (tmp_path / file).write_text(SOURCE + "\n")
    assert (judged(tmp_path, first), judged(tmp_path, second)) == (None, None)


STATES = {
    "loam_lab.judging.statistics.shift.x_shift__mutmut_1": "killed",
    "loam_lab.judging.statistics.shift.x_shift__mutmut_12": "survived",
    "loam_lab.judging.statistics.data.x_load__mutmut_2": "not checked",
    "loam_lab.judging.claims.values.x_read__mutmut_3": "timeout",
}


@pytest.mark.parametrize(
    ("digits", "only", "again", "names"),
    [
        ("", [], False, []),
        ("26", [], False, ["*__mutmut_*2", "*__mutmut_*6"]),
        ("", ["claims.values"], False, ["loam_lab.judging.claims.values.*"]),
        ("1", ["statistics.shift"], False, ["loam_lab.judging.statistics.shift.*__mutmut_*1"]),
        ("", [], True, [*STATES][1:]),
        ("2", [], True, [*STATES][1:3]),
        ("", ["statistics.data", "claims.values"], True, [*STATES][2:]),
        ("", ["statistics.intervals"], True, []),
    ],
)
def test_what_mutmut_is_asked_to_judge(digits: str, only: list[str], again: bool, names: list[str]) -> None:
    assert operators_lab.wanted(STATES, digits, only, again) == names


def test_a_sample_is_drawn_by_its_seed_and_each_is_as_likely() -> None:
    every = [f"m{number}" for number in range(10)]
    assert sampling.drawn(every, 4, 1) == sampling.drawn(every, 9, 1)[:4] != sampling.drawn(every, 4, 2)
    assert sorted(sampling.drawn(every, 99, 3)) == sorted(every) and sampling.drawn([], 5, 1) == []
    counts = Counter(name for seed in range(2000) for name in sampling.drawn(every, 3, seed))
    assert all(500 < counts[name] < 700 for name in every)


@pytest.mark.parametrize(
    ("killed", "judged", "low", "high"),
    [(0, 0, 0, 1), (0, 10, 0, 0.2775), (10, 10, 0.7225, 1), (9, 10, 0.5958, 0.9821), (90, 100, 0.8256, 0.9448)],
)
def test_a_score_has_wilsons_interval(killed: int, judged: int, low: float, high: float) -> None:
    assert sampling.interval(killed, judged) == pytest.approx((low, high), abs=1e-4)


def test_a_sample_says_what_follows_for_all() -> None:
    assert sampling.score(90, 100, 7) == "sample of seed 7: 90 of 100 killed; of all 83 to 94 %"


def test_a_sample_of_the_lab_is_of_all_and_judges_what_is_left() -> None:
    assert sorted(operators_lab.sample(STATES, [], 99, 1)) == sorted(STATES)
    assert operators_lab.sample(STATES, ["claims.values"], 99, 1) == [[*STATES][3]]
    assert len(operators_lab.sample(STATES, [], 2, 1)) == 2
    assert operators_lab.left_of([*STATES], STATES) == [*STATES][1:]


def test_a_sample_of_the_runtime_is_of_all_its_files_and_else_a_share_of_each(file: str) -> None:
    every = operators_runtime.mutants_of(file)
    assert operators_runtime.chosen([file], None, 1, 1) == every
    assert len(operators_runtime.chosen([file], None, 3, 1)) == -(-len(every) // 3)
    four = operators_runtime.chosen([file], 4, 1, 1)
    assert len(set(four)) == 4 and set(four) <= set(every)
    all_of_it = operators_runtime.chosen([file], 99, 1, 1)
    assert all_of_it != every and set(all_of_it) == set(every)
