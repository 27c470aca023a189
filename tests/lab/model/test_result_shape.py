"""A result that was damaged or edited by hand is refused by the place of the damage, never by a traceback."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import synthetic_results

from loam_lab.base.errors import LoamError
from loam_lab.commands import cite
from loam_lab.model import result as results
from loam_lab.model.result import schema
from loam_lab.presenting import report

ROOT = Path(__file__).parents[3]
WRONG = ["deleted", None, "x", -1, [], {}, float("inf"), True, 7]
RESULTS = {
    "tour": synthetic_results.tour, "ad hoc": synthetic_results.ad_hoc, "bench": synthetic_results.bench,
    "troubled": synthetic_results.troubled, "hostile": synthetic_results.hostile,
}  # fmt: skip


def places(value: Any, where: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every part of a document, of long lists the first three."""
    if where:
        yield where
    below = value.items() if isinstance(value, dict) else enumerate(value[:3]) if isinstance(value, list) else ()
    for name, part in below:
        yield from places(part, (*where, name))


def damaged(result: dict[str, Any], where: tuple[str | int, ...], by: object) -> dict[str, Any]:
    """A copy with one part replaced or deleted."""
    made = copy.deepcopy(result)
    above: Any = made
    for part in where[:-1]:
        above = above[part]
    if by == "deleted":
        del above[where[-1]]
    else:
        above[where[-1]] = by
    return made


@pytest.mark.parametrize("name", RESULTS)
def test_whole_results_have_the_shape(name: str) -> None:
    made = RESULTS[name]()
    again = results.of_json(results.of_json(made, name).as_json(), name)
    assert again == results.of_json(made, name)


@pytest.mark.parametrize(
    ("where", "by", "message"),
    [
        (("headlines", 0), True, "r: headlines[0]: Expected `object`, got `bool`"),
        (("cells", 2, "factors", "threads"), 1.5, "r: cells[2].factors.threads: Expected `int`, got `float`"),
        (("primary_metrics", "intset"), -1, "r: primary_metrics[...]: Expected `str`, got `int`"),
        (("failures",), {}, "r: failures: Expected `array`, got `object`"),
        (("cells", 0, "copy"), True, "r: cells[0].copy: Expected `int`, got `bool`"),
    ],
)
def test_the_damaged_place_is_named(where: tuple[str | int, ...], by: object, message: str) -> None:
    with pytest.raises(LoamError) as caught:
        results.of_json(damaged(synthetic_results.troubled(), where, by), "r")
    assert str(caught.value).startswith(message)


def test_what_is_null_or_missing_is_as_a_file_that_does_not_say_it() -> None:
    made = synthetic_results.tour()
    less = {name: part for name, part in made.items() if name not in ("headlines", "units", "syncs")}
    assert results.of_json(less) == results.of_json({**less, "headlines": None, "units": None, "syncs": None})


def test_the_schema_file_is_what_the_classes_say() -> None:
    assert (ROOT / schema.FILE).read_text() == schema.text(), "python -P -m loam_lab.model.result.schema writes it"


def test_whatever_is_damaged_the_report_is_written_or_refused(tmp_path: Path) -> None:
    result = synthetic_results.troubled()
    known = list(places(result))
    rng = random.Random(4)
    refused = 0
    for _ in range(30):
        where, by = rng.choice(known), rng.choice(WRONG)
        made = damaged(result, where, by)
        try:
            report.build(results.of_json(made), tmp_path, formats=("csv", "md"))
            cite.cite(results.of_json(made))
        except LoamError:
            refused += 1
        except Exception as problem:
            raise AssertionError(f"{where} = {by!r}") from problem
    assert 3 < refused < 27
