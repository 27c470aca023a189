"""The page of real programs under ours and its peers."""

from __future__ import annotations

from typing import Any

import pytest
from program_results import cell, result
from typed import typed

from loam_lab.presenting.pages import programs_speed

SECONDS = {"ours": 1.0, "a": 0.8, "b": 2.0, "ours:hardened=1": 9.0}
OTHERS = {"ours": 1.0, "a": 1.6, "b": 1.0, "ours:hardened=1": 9.0}
BLOCKS = range(1, 9)
EQUAL = dict.fromkeys(SECONDS, float(1 << 20))


def made(peaks: dict[str, float | None], **changed: Any) -> dict[str, Any]:
    cells = [cell("one", name, [s * block for block in BLOCKS], peaks[name]) for name, s in SECONDS.items()]
    cells += [cell("two", name, [s * block for block in BLOCKS], 1 << 20) for name, s in OTHERS.items()]
    return result(cells, **changed)


def test_rates_are_beside_ours_and_the_fastest_is_marked() -> None:
    text = programs_speed.page(typed(made(dict(EQUAL))), "ours")
    assert "| program | ours, s | a | b |" in text, "other settings of ours are no peer"
    assert "| `one` | 4.50 | **1.250 [1.250, 1.250]** | 0.500 [0.500, 0.500] |" in text
    assert "in up to 8 paired blocks, made up, 2 cores, 2026-01-01" in text


def test_ours_is_held_against_the_peer_with_the_best_mean() -> None:
    text = programs_speed.page(typed(made(dict(EQUAL))), "ours")
    assert "best geometric mean over these programs is **a**: ours's rate is\n1.131" in text
    assert "| one | 0.800 [0.800, 0.800] (over the limit) | a | 0.800 [0.800, 0.800] |" in text


def test_memory_is_compared_where_every_peak_is_known() -> None:
    known = programs_speed.page(typed(made({**EQUAL, "a": 2 << 20})), "ours")
    assert "| a (fast) | 1.414 [" in known.split("## Peak memory")[1]
    unknown = programs_speed.page(typed(made({**EQUAL, "a": 2 << 20, "ours": None})), "ours")
    assert "| a (fast) | 1.000 [" in unknown.split("## Peak memory")[1], "of the other program alone"


def test_a_block_that_one_lacks_is_paired_with_no_other() -> None:
    content = made(dict(EQUAL))
    metric = next(c for c in content["cells"] if c["factors"]["allocator"] == "a")["metrics"]["cpu_s"]
    del metric["values"][2], metric["blocks"][2]
    text = programs_speed.page(typed(content), "ours")
    assert "**1.250 [1.250, 1.250]**" in text, "shifted by one, the ratios would differ"


def test_pools_of_python_and_programs_without_speed_are_left_out() -> None:
    cells = made(dict(EQUAL))["cells"]
    cells += [cell("python3", name, [1.0] * 8, None, parameters={"python": "pymalloc"}) for name in ("ours", "a")]
    cells += [cell("server", name, [1.0] * 8, None) for name in ("ours", "a")]
    content = result(cells)
    content["groups"] = [
        {**group, "role": "counted" if group["name"] == "server" else "main"} for group in content["groups"]
    ]
    text = programs_speed.page(typed(content), "ours")
    assert "python3`" not in text and "server" not in text


def test_a_result_of_another_kind_is_refused() -> None:
    other = cell("intset", "ours", [1.0], None)
    other["factors"]["sync"] = "etl-wb"
    with pytest.raises(ValueError, match=r"\./loam study run programs does"):
        programs_speed.page(typed(result([other])), "ours")
    with pytest.raises(ValueError, match="does not compare theirs"):
        programs_speed.page(typed(made(dict(EQUAL))), "theirs")
