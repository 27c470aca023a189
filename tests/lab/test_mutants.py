"""Every mutant fits the source, and a place is found as tests/mutants/places.py says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "mutants"))
import mutant
from mutant import Broken, Mutant, apply
from places import Lost


def text_of(test: Path) -> str:
    """A test with the headers of tests/ that it includes: they may hold cases that several tests share.

    Pieces for schemes of delegation have the names that these have in their own files.
    """
    text = test.read_text()
    shared = re.findall(r'^#include "(tests/[^"]+)"', text, re.MULTILINE)
    named = sorted((mutant.ROOT / "runtime/delegation/schemes").glob("*.hpp")) if "Schemes::for_each" in text else []
    return "\n".join([text, *(file.read_text() for file in (*(mutant.ROOT / header for header in shared), *named))])


def problem_of(one: Mutant, folder: Path) -> str:
    try:
        one.apply(folder)
        source = text_of(mutant.source_of_test(one.test))
    except Broken as problem:
        return str(problem)
    # "Suite.Case/variant", with * anywhere; names made of macros are left to run.py.
    words = re.findall(r"\w{6,}", one.filter.split("/")[0])
    return "" if all(word in source for word in words) else f"{one.test} has no test of the name {one.filter}"


def test_every_mutant_fits_the_source_and_names_a_test(tmp_path: Path) -> None:
    mutants = mutant.mutants()
    assert len(mutants) > 200, "some were not found"
    wrong = [f"{one.name}: {problem}" for one in mutants if (problem := problem_of(one, tmp_path / one.name))]
    assert not wrong, "\n" + "\n".join(wrong)


SOURCE = """
namespace loam {
struct First {
  // a store(1) in a comment
  void put(int x) noexcept { store(1); other(x); }
};
template <class T, bool kLast = false>
struct Second : First {
  explicit Second(int x) : value_(x) { store(2); }
  void put(int x) const {
    for (int i = 0; i < x; ++i)
      if (wanted(i)) {
        store(1);  // once
      }
    const char* const text = "store(1); }";
    store(x,
          "1");
  }
};
}  // namespace loam
"""


def changed(**edit: str) -> str:
    """What an edit removes from SOURCE, and puts there."""
    after = apply({name.rstrip("_"): value for name, value in edit.items()}, SOURCE)
    first = next(i for i, (a, b) in enumerate(zip(SOURCE, after, strict=False)) if a != b)
    last = next(i for i in range(1, len(SOURCE)) if SOURCE[-i] != after[-i] or len(after) - i < first)
    return " ".join(SOURCE[first : len(SOURCE) - last + 1].split())


def test_a_place_is_sought_in_the_function_that_is_named() -> None:
    assert "store(1); other" in SOURCE.replace(changed(in_="First::put", drop="store(1)"), "store(1);")
    assert changed(in_="Second::put", drop='store ( x , "1" /* said so */ )') == 'store(x, "1");'
    assert changed(in_="Second::Second", old="2", new="3") == "2"


def test_a_statement_goes_with_its_condition_or_loop() -> None:
    assert (
        changed(in_="Second::put", drop="wanted(i)")
        == "for (int i = 0; i < x; ++i) if (wanted(i)) { store(1); // once }"
    )
    assert changed(in_="Second::put", drop="const text") == 'const char* const text = "store(1); }";'


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        ({"in": "put", "drop": "store(1)"}, "occurs 2 times in put, not once"),
        ({"in": "get", "drop": "store(1)"}, "occurs 0 times in get, not once"),
        ({"drop": "a store(1) in a comment"}, "occurs 0 times, not once"),
        ({"drop": "store(2)", "old": "2", "new": "1"}, "`drop`, or `old` and `new`"),
        ({"old": "2"}, "`drop`, or `old` and `new`"),
        ({"drop": "store(2)", "within": "put"}, "`drop`, or `old` and `new`"),
    ],
)
def test_a_place_that_is_not_the_only_one_is_refused(edit: dict[str, str], message: str) -> None:
    with pytest.raises(Lost, match=re.escape(message)):
        apply(edit, SOURCE)
