"""The report says what `bench` advises: the recommendation, what to take for what, and the line to paste."""

from __future__ import annotations

from synthetic_results import tour
from typed import typed

from loam_lab.presenting.report import takeaways, view


def test_the_choices_and_the_line_stand_in_the_report() -> None:
    raw = tour()
    raw["recommendation"] = {
        "allocator": "a", "text": "Use a.", "command": "LD_PRELOAD=a cmd", "by": "wall_s",
        "choices": [
            {"for": "speed", "allocator": "a", "text": "a"},
            {"for": "memory", "allocator": "b", "text": "b, less", "command": "LD_PRELOAD=b cmd"},
        ],
        "lines": {"shell": "LD_PRELOAD=a cmd", "Dockerfile": "ENV LD_PRELOAD=a"},
    }  # fmt: skip
    texts = [(one.lead, one.text) for one in takeaways.take_home(view.read(typed(raw), "result"))]
    at = texts.index(("Recommendation", "Use a."))
    assert texts[at + 1 : at + 5] == [
        ("For speed", "a"), ("For memory", "b, less"), ("To paste for b", "LD_PRELOAD=b cmd"), ("To paste", "LD_PRELOAD=a cmd"),
    ]  # fmt: skip
