"""Every number that a report prints, held against the result that it was made from."""

from __future__ import annotations

import csv
import io
import math
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest
import synthetic_results
import synthetic_study
from typed import typed

from loam_lab.model.result import Histogram, PaperFigure, PaperTable, Value
from loam_lab.presenting import report
from loam_lab.presenting.report import (
    frame,
    heat,
    ledger,
    listing,
    marks,
    memory,
    order,
    palette,
    paper_figures,
    placement,
    retries,
    ribbons,
    threats,
    view,
)  # fmt: skip


class Tables(HTMLParser):
    """Tables of a page as (caption, rows of texts), and the attributes of the links in them."""

    def __init__(self) -> None:
        super().__init__()
        self.captioned: list[tuple[str, list[list[str]]]] = []
        self.links: list[dict[str, str | None]] = []
        self.inside = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "table":
            self.captioned.append(("", []))
        elif tag == "tr":
            self.captioned[-1][1].append([])
        elif tag in ("th", "td"):
            self.captioned[-1][1][-1].append("")
            self.inside = tag
        elif tag == "caption":
            self.inside = tag
        elif tag == "a" and self.inside in ("th", "td"):
            self.links.append(dict(attrs))

    def handle_endtag(self, tag: str) -> None:
        if tag == self.inside:
            self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "caption":
            self.captioned[-1] = (self.captioned[-1][0] + data, self.captioned[-1][1])
        elif self.inside:
            self.captioned[-1][1][-1][-1] += data

    def one(self, caption: str) -> list[list[str]]:
        (rows,) = [rows for name, rows in self.captioned if name == caption]
        return [[text.strip() for text in row] for row in rows]


@pytest.fixture(scope="module")
def result() -> dict[str, Any]:
    return synthetic_study.study()


@pytest.fixture(scope="module")
def page(result: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> str:
    return report.build(typed(result), tmp_path_factory.mktemp("numbers"), formats=("html",))["html"].read_text()


@pytest.fixture(scope="module")
def tables(page: str) -> Tables:
    parser = Tables()
    parser.feed(page)
    return parser


def number(text: str) -> float:
    """A printed number read back."""
    return float(text.replace("\u202f", "").replace("−", "-"))


def test_every_ratio_of_the_heat_map(result: dict[str, Any], tables: Tables) -> None:
    rows = tables.one("Ratio to glibc")
    assert rows[0][1:] == list(synthetic_results.ALLOCATORS)
    shown = [cell for row in rows[1:] for cell in row[1:]]
    cells = [cell for cell in result["cells"] if cell["copy"] == 0]
    assert len(shown) == len(cells) == 144
    chance = 0
    for text, cell in zip(shown, cells, strict=True):
        ratio = cell["ratio_to_baseline"]
        if ratio is None:
            assert text == "1"
            continue
        figure, mark = text.split()
        assert number(figure) == pytest.approx(ratio["estimate"], abs=0.0051)
        wanted = {"better": "▲", "worse": "▼", "equivalent": "≈", "inconclusive": "?"}[cell["verdict"]]
        assert mark == (wanted if ratio["q"] < 0.05 or wanted in "≈?" else "?")
        chance += ratio["q"] >= 0.05
    assert chance


def test_blocks_of_the_heat_map_are_those_of_the_result(result: dict[str, Any], tables: Tables) -> None:
    links = [link for link in tables.links if "data-values" in link]
    cells = [cell for cell in result["cells"] if cell["copy"] == 0]
    assert len(links) == len(cells)
    for link, cell in zip(links, cells, strict=True):
        metric = result["primary_metrics"][cell["factors"]["workload"]]
        values = cell["metrics"][metric]["values"]
        shown = [float(text) for text in (link["data-values"] or "").split()]
        factor = 10 ** round(math.log10(values[0] / shown[0]))
        assert shown == pytest.approx([value / factor for value in values], rel=2e-3)


def test_chance_turns_a_difference_into_none() -> None:
    result = synthetic_results.tour()
    cell = result["cells"][5]
    assert cell["verdict"] == "better"
    for q, wanted in ((0.049, "better"), (0.05, "inconclusive")):
        cell["ratio_to_baseline"]["q"] = q
        assert heat.verdict(view.read(typed(result)).cells[5]) == wanted


def test_colour_follows_what_is_good() -> None:
    study = view.read(typed(synthetic_results.bench()))  # less time is better
    heat_map = heat.build(study)
    assert heat_map is not None
    slower = heat_map.rows[0].squares[5]
    assert slower is not None and float(slower.figure) > 1.1
    assert palette.luminance(slower.ground) < palette.luminance(palette.LEVEL)
    assert int(slower.ground[1:3], 16) > int(slower.ground[5:7], 16), "orange, not blue"


def test_text_on_every_colour_of_the_scale_is_readable() -> None:
    for step in range(101):
        for end in (palette.WORSE, palette.BETTER):
            ground = palette.mix(palette.LEVEL, end, step / 100)
            assert palette.contrast(ground, palette.on(ground)) >= 4.5
    assert palette.contrast("#000000", "#ffffff") == pytest.approx(21)
    assert palette.contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_colours_of_the_page_and_of_the_marks() -> None:
    css = (Path(report.__file__).parent / "templates" / "report.css").read_text()
    themes = [dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in re.findall(r":root[^{]*\{([^}]*)\}", css)]
    themes = [theme for theme in themes if theme]
    assert len(themes) == 3 and themes[1] == themes[2]
    for theme in themes:
        for ground in ("ground", "raised"):
            for ink in ("ink", "quiet", "accent", "good"):
                assert palette.contrast(theme[ink], theme[ground]) >= 4.5, (ink, ground)
        for colour in [*palette.of_allocators(synthetic_results.ALLOCATORS).values(), *palette.THREADS, palette.SHARED]:
            assert palette.contrast(colour, theme["ground"]) >= 2.7, colour


def test_claims_and_the_papers_figures(result: dict[str, Any], page: str, tables: Tables, tmp_path: Path) -> None:
    section = page[page.index('<section id="claims">') : page.index('<section id="overview">')]
    for claim in result["claims"]:
        for text in (claim["id"], claim["sentence"], claim["reason"], claim["verdict"].capitalize()):
            assert text in section
    markdown = report.build(typed(result), tmp_path, formats=("md",))["md"].read_text()
    assert "- ✗ **contradicted** C02: glibc has the fewest aborts on the list. jemalloc has fewer" in markdown
    assert "best over worst: 1.37" in section and "best over worst: 1.284 [1.262, 1.301]" in section
    assert "Of 3 claims 1 reproduced, 1 contradicted and 1 undecided." in section
    paper = tables.one("Figure 3 in the paper")
    wanted = result["paper_figures"][0]["paper"]["rows"]
    assert [[number(text) for text in row] for row in paper[1:]] == wanted
    ours = next(rows for caption, rows in tables.captioned if caption == "Measured here")
    assert ours[1] == ["16", "8.71 [8.60, 8.80]", "11.00 [10.90, 11.20]"]


def test_claims_that_follow_from_others_are_told_and_not_counted() -> None:
    result = synthetic_study.study()
    again = {**result["claims"][0], "id": "C04", "follows_from": ["C01"]}
    result["claims"] += [
        again,
        {**result["claims"][2], "id": "C05", "verdict": "not asked", "reason": "group x did not run"},
    ]
    claims = ledger.claims(view.read(typed(result)))
    assert ledger.tally(claims) == (
        "Of 4 claims 1 reproduced, 1 contradicted, 1 undecided and 1 not asked. 1 more follows from these."
    )
    assert "follows from C01, and is not counted again" in claims[3].notes and claims[4].mark == "–"
    assert ledger.tally([*claims, claims[3]]).endswith("2 more follow from these.")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (None, "–"), ("32 KiB", "32 KiB"), (12.5, "12.5"), (1 / 3, "0.3333"), (8, "8"), (0.0312, "0.0312"), (True, "yes"),
        (Value(8.713, 8.6, 8.8), "8.71 [8.60, 8.80]"),
        (Value(88_120_000.0, 87_900_000.0, 88_400_000.0), "88.12 M [87.90, 88.40]"),
        (Value(2.5), "2.5"), (float("nan"), "nan"),
    ],
)  # fmt: skip
def test_values_of_the_ledger(given: Any, shown: str) -> None:
    assert ledger.value(given) == ("nan" if shown == "nan" else shown)


def test_limits_are_those_of_the_result(result: dict[str, Any]) -> None:
    rows = {row[0]: row[1] for row in threats.table(view.read(typed(result))).rows}
    assert rows["Disturbance from outside"].startswith("24 of 240 blocks repeated, 8 stayed disturbed (3.3\u00a0%)")
    assert rows["Many comparisons: best and worst"] == "24 cases, adjusted by Holm"
    assert rows["Many comparisons: heat map"] == "144 comparisons, adjusted by Benjamini-Hochberg"
    assert "not reached after 10 blocks (at most 30)" in rows["Stopping rule"]
    assert rows["More threads than cores"] == "4 and 8 threads on 2 cores"
    assert "perf_event: the hypervisor shows no counters" in rows["Counter sources"]
    result["cells"][0]["memory"]["fit"] = False
    assert (
        "1 of 90 memory runs unfit"
        in {r[0]: r[1] for r in threats.table(view.read(typed(result))).rows}["Memory figures"]
    )
    result["cells"][0]["memory"]["fit"] = True


def test_what_a_simulated_machine_assumes_stands_beside_the_verdicts_that_rest_on_it(result: dict[str, Any]) -> None:
    made = {**result, "machines": {
        "host": {"fingerprint": "f0"}, "sim:one": {"fingerprint": "f1", "assumed": ["atomic", "memory.cycles"]},
        "sim:two": {"fingerprint": "f2", "assumed": []},
    }}  # fmt: skip
    claim = {"id": "C", "sentence": "s", "verdict": "reproduced"}
    made["claims"] = [claim, {**claim, "guessed": {"sim:one": ["atomic", "memory.cycles"]}}]
    study = view.read(typed(made))
    notes = [one.notes for one in ledger.claims(study)]
    assert notes == [(), ("rests on assumed numbers of sim:one (atomic, memory.cycles)",)]
    rows = {row[0]: row[1] for row in threats.table(study).rows}
    assert rows["Assumed numbers of sim:one"] == "atomic, memory.cycles"
    assert "Assumed numbers of sim:two" not in rows


def test_memory_and_counters(result: dict[str, Any], tables: Tables) -> None:
    rows = tables.one("Memory: threadtest, 16\u00a0B blocks")
    for row, cell in zip(rows[1:], result["cells"][:6], strict=True):
        peak = cell["memory"]["peak_pss_bytes"] / 2**20
        assert row[2] == f"{peak:.1f} MiB"
    (rows,) = [
        rows for caption, rows in tables.captioned if caption == "Counters per operation: threadtest, 16\u00a0B blocks"
    ]
    assert [row[2] for row in rows[1::2]] == [f"{812.4 + 31 * place:.0f}" for place in range(6)]


def test_courses_are_made_of_all_levels(result: dict[str, Any]) -> None:
    study = view.read(typed(result))
    courses = ribbons.courses(study)
    assert [(course.factor, course.levels) for course in courses] == [
        ("threads", (1, 2, 4, 8)), ("threads", (1, 2, 4, 8)), ("threads", (1, 2, 4, 8)), ("size", tuple(synthetic_study.SIZES)),
    ]  # fmt: skip
    drawing = ribbons.draw(study, courses[3], "x")
    assert drawing is not None
    assert drawing.body.count("<circle") == 72 and drawing.body.count('opacity="0.26"') == 6
    # Two levels are a comparison, not a course.
    assert ribbons.courses(view.read(typed(synthetic_results.ad_hoc()))) == []


def test_an_axis_puts_values_where_they_belong() -> None:
    log = frame.Axis("", 1, 100, log=True)
    assert [log.place(value) for value in (1, 10, 100)] == pytest.approx([0, 0.5, 1])
    assert frame.log_ticks(1, 1000) == [1, 10, 100, 1000]
    assert frame.log_ticks(2, 9) == [2, 3, 4, 5, 6, 7, 8, 9] and frame.log_ticks(15, 300) == [30, 100, 300]
    assert frame.log_ticks(21.2611625, 24.2420647) == [22, 23, 24]
    assert frame.short(2048) == "2\u202fKi" and frame.short(0.05) == "0.05"
    assert frame.span([5.0, 5.0])[0] < 5 < frame.span([5.0, 5.0])[1]
    drawn = frame.Frame(frame.Axis("", 0, 10), frame.Axis("", 0, 1))
    assert drawn.x(0) == frame.LEFT and drawn.x(10) == frame.WIDTH - frame.RIGHT
    assert drawn.y(1) == frame.TOP and drawn.y(0) == frame.HEIGHT - frame.BOTTOM


def test_retries_are_shares_of_commits() -> None:
    cell = view.read(typed(synthetic_results.tour())).cells[0]
    shares = retries.shares(msgspec.structs.replace(cell, aborts_per_commit=Histogram([0, 1, 2], [90, 9, 1])))
    assert shares == [(1, 0.1), (2, 0.01)]
    assert retries.shares(cell) == []


def test_drift_is_found_and_disturbed_blocks_are_ringed() -> None:
    result = synthetic_results.ad_hoc()
    result["timeline"] = [
        {
            "order": t,
            "t_s": float(t),
            "cell": t % 2,
            "block": t // 2,
            "attempt": int(t == 7),
            "value": 100.0 + (10 if t > 9 else 0),
        }
        for t in range(20)
    ]
    study = view.read(typed(result))
    ((group, entries),) = order.by_group(study)
    assert order.remark(entries) == "drift +10.0\u00a0%"
    drawing = order.draw(study, group, entries, "x", "t")
    assert drawing is not None and drawing.body.count("<circle") == 1 and "1 disturbed" in drawing.description
    for entry in result["timeline"]:
        entry["value"] = 0.0
    ((group, entries),) = order.by_group(view.read(typed(result)))
    assert order.draw(study, group, entries, "x", "t") is None


def test_placement_counts_what_threads_share() -> None:
    blocks = (
        placement.Block(0, 0, 16, 1),
        placement.Block(1, 32, 16, 1),
        placement.Block(0, 64, 16, 2),
        placement.Block(1, 120, 16, 3),
    )
    picture = placement.Picture("a", "neighbours", "", 64, 5, blocks)
    # The last block reaches into a third line, which it has alone.
    assert placement.shared_lines(picture) == (2, 3)
    assert placement.shared_records(picture) == (1, 3)
    assert placement.draw(picture, "x").body.count(palette.SHARED) == 2


def test_the_trade_marks_who_is_beaten_in_both(result: dict[str, Any]) -> None:
    study = view.read(typed(result))
    drawing = memory.trade(study, study.groups[0], "x", "t")
    assert drawing is not None
    # Slower than glibc with more memory than it.
    assert re.findall(r"(\S+): [^;]*beaten in both", drawing.description) == ["glibc:tcache=0", "tbb"]


def test_bars_of_the_paper_become_one_panel_per_part() -> None:
    study = view.read(typed(synthetic_results.tour()))
    rows = [[part, shift, Value(1e6 * shift, 9e5 * shift, 1.1e6 * shift)] for part in "ab" for shift in (4, 5)]
    item = PaperFigure("figure 6", kind="bar", ours=PaperTable(["of", "shift", "glibc"], rows))
    panels = paper_figures.draw(study, item)
    assert [caption for caption, _ in panels] == ["Here: a, in M", "Here: b, in M"]
    assert paper_figures.draw(study, msgspec.structs.replace(item, kind="table")) == ()
    assert paper_figures.draw(study, msgspec.structs.replace(item, ours=PaperTable(["what"], [["words"]]))) == ()


def test_memory_counters_and_adjusted_p_are_in_the_csv(result: dict[str, Any], tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(report.build(typed(result), tmp_path, formats=("csv",))["csv"].read_text())))
    mine = {row["metric"]: row["estimate"] for row in rows[: [row["allocator"] for row in rows].index("jemalloc")]
            if row["allocator"] == "glibc:tcache=0"}  # fmt: skip
    cell = result["cells"][1]
    assert float(mine["pairs_per_s_to_baseline.q"]) == cell["ratio_to_baseline"]["q"]
    assert float(mine["memory.mean_pss_bytes"]) == cell["memory"]["mean_pss_bytes"]
    assert float(mine["callgrind.instructions"]) == 843.4 and float(mine["cachegrind.l1d_misses"]) == 5.2


def test_a_search_for_settings_is_told(tmp_path: Path) -> None:
    result = synthetic_results.bench()
    span = {"estimate": 0.91, "low": 0.9, "high": 0.92}
    name = "jemalloc:narenas=1"
    result["search"] = {
        "best": "jemalloc", "baseline": "glibc", "text": f"Use {name}: 9 % less time.", "check": "./loam bench --check",
        "winner": {"allocator": "jemalloc", "command": "MALLOC_CONF=narenas:1 tool"}, **span,
        "rounds": [{"round": 1, "candidates": [
            {"allocator": "mimalloc:purge_delay=0", "estimate": None, "low": None, "high": None, "kept": False},
            {"allocator": name, **span, "kept": True},
        ]}],
        "final": [{"allocator": name, "to_best": span, "to_baseline": {"estimate": 0.8, "low": 0.79, "high": 0.81}}],
    }  # fmt: skip
    page = report.build(typed(result), tmp_path, formats=("html",))["html"].read_text()
    parser = Tables()
    parser.feed(page)
    final = parser.one("The final, with fresh runs")
    assert final[1] == [name, "0.91", "[0.90, 0.92]", "0.80", "[0.79, 0.81]"]
    rounds = parser.one("The rounds: they select, and prove nothing")
    assert [row[0] for row in rounds[1:]] == [name, "mimalloc:purge_delay=0"] and rounds[1][-1] == "kept"
    assert page.index("9 % less time") < page.index('id="search"') < page.index("MALLOC_CONF=narenas:1 tool")
    assert "./loam bench --check" in page


def test_means_and_probabilities(result: dict[str, Any]) -> None:
    study = view.read(typed(result))
    means, best = listing.geomeans(study), listing.best(study)
    assert means is not None and means.rows[0][1:] == ("1.21", "[1.21, 1.22]", "▲ better")
    assert best is not None and best.rows == (
        ("threadtest, 16 B blocks", "mimalloc 93\u00a0%", "tcmalloc 7.0\u00a0%", "–"),
    )


def test_marks_escape_and_cut() -> None:
    assert "<b>" not in marks.text(0, 0, "<b>", hover="<i>") and "<i>" not in marks.text(0, 0, "x", hover="<i>")
    cut = marks.text(0, 0, "a very long name of something", room=60)
    assert "…" in cut and "<title>a very long name of something</title>" in cut
    assert marks.dots([], 1, "#000000", 1) == ""


@pytest.mark.parametrize(
    "key", ["claims", "paper_figures", "placements", "timeline", "geomeans", "best", "counter_sources"]
)
@pytest.mark.parametrize("value", [None, []])
def test_parts_that_are_missing_or_empty_break_nothing(tmp_path: Path, key: str, value: Any) -> None:
    result = synthetic_results.ad_hoc()
    result[key] = value
    page = report.build(typed(result), tmp_path, formats=("html",))["html"].read_text()
    assert ">None<" not in page and ">nan<" not in page


def test_what_is_cut_still_tells_allocators_apart() -> None:
    names = [f"pool:bytes=16777552{rest}" for rest in ("", ":small=256", ":small=512", ":small=1024:provision=block")]
    shown = [marks.shortened(name, 15) for name in names]
    assert shown == ["pool:…=16777552", "pool:…small=256", "pool:…small=512", "pool:…ion=block"]
    assert marks.shortened("a title that goes on", 10) == "a title t…"
    assert marks.shortened("glibc:tcache=0", 14) == "glibc:tcache=0"
