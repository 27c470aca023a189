"""The document of a watched run and its page: their shape, and what the picture of a cache line shows."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from synthetic_watches import LINE, block, caught, process, watch

from loam_lab.base import paths
from loam_lab.commands.explain.sharing import comparison, document, findings
from loam_lab.commands.explain.sharing.run import Performed
from loam_lab.model import explanation
from loam_lab.presenting.report import explanation_page as page


def explained(*lines: str, command: str = "./p") -> dict[str, Any]:
    seen = findings.see([process(*lines)], Path("/"))
    return document.of([command], "jemalloc", seen, Performed(list(seen.processes), "", 1.5))


BOTH = [watch(), caught(LINE + 16), block(LINE, LINE, 8), block(LINE + 16, LINE + 16, 12)]


def test_the_document_has_the_shape_of_its_schema() -> None:
    assert (paths.root() / explanation.FILE).read_text() == explanation.text(), (
        "python -P -m loam_lab.model.explanation writes it"
    )
    content = explained(*BOTH * 5)
    assert explanation.typed(content).blocks[0].cause == "other_block"
    for empty in (explained(), explained(watch(), watch())):
        explanation.typed(empty)
    several = comparison.as_json(["./p"], [comparison.Ran("jemalloc", content), comparison.Ran("tbb", None, "no")])
    assert msgspec.convert(several, explanation.Comparison).runs[0].explained is not None


@pytest.mark.parametrize("change", ["more", "less", "other"])
def test_another_shape_is_refused(change: str) -> None:
    content = copy.deepcopy(explained(*BOTH * 5))
    if change == "more":
        content["blocks"][0]["color"] = 1
    elif change == "less":
        del content["run"]["wall_s"]
    else:
        content["shared"]["share"] = "much"
    with pytest.raises(msgspec.ValidationError):
        explanation.typed(content)


def test_the_picture_has_the_blocks_and_who_used_which_bytes() -> None:
    reads = [watch(LINE + 4, how="r"), caught(LINE + 16), block(LINE + 4, LINE, 8), block(LINE + 16, LINE + 16, 12)]
    content = explanation.typed(explained(*BOTH * 4, *reads))
    pictures = [one.picture for one in content.blocks if one.picture]
    first = pictures[0]
    assert first.address == f"{LINE:#x}" and first.watches == 4
    assert [(one.start, one.bytes) for one in first.blocks] == [(0, 8), (16, 12)]
    assert [(one.thread, one.first, one.last, one.how, one.times) for one in first.accesses] == [
        (1, 0, 7, "wrote", 4), (2, 16, 23, "read or wrote", 4),
    ]  # fmt: skip
    # Of a thread that reads, only the writes of others trap.
    second = pictures[1]
    assert [(one.first, one.last, one.how) for one in second.accesses] == [(4, 11, "read"), (16, 23, "wrote")]


def test_the_line_that_was_caught_most_is_drawn() -> None:
    there = LINE + 64
    other = [watch(there), caught(there + 16), block(there, there, 8), block(there + 16, there + 16, 12)]
    content = explanation.typed(explained(*BOTH * 3, *other * 5))
    (pair,) = content.blocks
    assert pair.share > 0 and pair.picture is not None
    assert (pair.picture.address, pair.picture.watches) == (f"{there:#x}", 5)


def test_the_page_begins_with_the_answer_and_escapes_what_it_was_given() -> None:
    content = explanation.typed(explained(*BOTH * 5, command="<script>alert(1)</script>"))
    text = page.render(content)
    assert text == page.render(content)
    assert "<script" not in text and "&lt;script&gt;" in text
    assert re.search(r"<h1>An? 8-byte block and a 12-byte block share a cache line; about \d+ %", text)
    drawing = text[text.index("<svg") : text.index("</svg>")]
    assert ">wrote</text>" in drawing and ">A</text>" in drawing and ">B</text>" in drawing
    assert "thread 1 wrote bytes 0 to 7, 5 times" in drawing
    for address in re.findall(r'(?:src|href)="([^"]*)"', text):
        assert address == "data:,"


def test_a_page_of_a_run_that_shares_nothing_has_no_picture() -> None:
    text = page.render(explanation.typed(explained(*[watch()] * 200)))
    assert "<h1>Nothing is shared:" in text and "<svg" not in text
