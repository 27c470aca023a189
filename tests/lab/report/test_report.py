"""The report's files: whole, deterministic, harmless with hostile text, honest about what is missing."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import time
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import synthetic_results
import synthetic_study
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.judging.statistics import verdicts
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model.result import Ends
from loam_lab.model.schema import SCHEMA
from loam_lab.presenting import report
from loam_lab.presenting.report import (
    builder,
    charts,
    commands,
    figures,
    findings,
    html,
    raster,
    svg,
    takeaways,
    threats,
    view,
    warning_list,
)
from loam_lab.setup import environments

VOID = {"meta", "link", "br", "img", "hr", "input"}
SVG_LEAVES = {"path", "line", "rect", "circle"}
MAKERS = {
    "tour": synthetic_results.tour,
    "ad_hoc": synthetic_results.ad_hoc,
    "bench": synthetic_results.bench,
    "troubled": synthetic_results.troubled,
    "hostile": synthetic_results.hostile,
    "study": synthetic_study.study,
}


class Strict(HTMLParser):
    """Fails on tags that do not nest; collects ids, references, attributes and text."""

    def __init__(self) -> None:
        super().__init__()
        self.stack: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SVG_LEAVES, f"<{tag}/> closes itself only in SVG"
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.stack and self.stack[-1] == tag, f"</{tag}> inside {self.stack[-3:]} at {self.getpos()}"
        self.stack.pop()

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def parse(page: str) -> Strict:
    parser = Strict()
    parser.feed(page)
    parser.close()
    assert parser.stack == []
    return parser


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Path]]:
    folder = tmp_path_factory.mktemp("reports")
    return {name: report.build(typed(make()), folder / name) for name, make in MAKERS.items()}


@pytest.mark.parametrize("name", MAKERS)
def test_page_is_well_formed_and_asks_for_nothing(built: dict[str, dict[str, Path]], name: str) -> None:
    page = built[name]["html"].read_text()
    parser = parse(page)
    tags = {tag for tag, _ in parser.tags}
    assert not tags & {"iframe", "object", "embed", "form", "base"}
    # One script, ours, and the policy allows no other.
    (code,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert code == html.script()[0]
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in (page[: page.index("<title>")])
    ids = [given["id"] for _, given in parser.tags if "id" in given]
    assert len(ids) == len(set(ids))
    for tag, given in parser.tags:
        assert not any(key.startswith("on") for key in given), (tag, given)
        assert given.get("src") is None
        if "href" in given:
            target = given["href"] or ""
            assert target == "data:," or target[1:] in ids, target
        if given.get("role") == "img":
            assert set((given["aria-labelledby"] or "").split()) <= set(ids)
        if tag == "th":
            assert given.get("scope") in ("col", "row")
    assert "url(" not in page and "@import" not in page
    assert len(page) < (5_000_000 if name == "study" else 1_000_000)


@pytest.mark.parametrize("name", MAKERS)
def test_same_input_same_bytes(built: dict[str, dict[str, Path]], name: str, tmp_path: Path) -> None:
    again = report.build(typed(MAKERS[name]()), tmp_path)
    for kind in ("html", "csv", "md"):
        assert again[kind].read_bytes() == built[name][kind].read_bytes()
    for picture in sorted(built[name]["svg"].iterdir()):
        assert (tmp_path / "figures" / picture.name).read_bytes() == picture.read_bytes()


@pytest.mark.parametrize("name", MAKERS)
def test_pictures_stand_alone(built: dict[str, dict[str, Path]], name: str) -> None:
    names = sorted(path.name for path in built[name]["svg"].iterdir())
    stems = {Path(file).stem for file in names}
    assert names == sorted(f"{stem}.svg" for stem in stems)
    for stem in stems:
        assert re.fullmatch("[a-z0-9-]+", stem)
        root = ET.parse(built[name]["svg"] / f"{stem}.svg").getroot()
        assert root.get("viewBox") and not [e for e in root.iter() if e.tag.endswith(("script", "image", "use"))]


def test_pictures_as_png_are_drawn_when_asked_for(tmp_path: Path) -> None:
    try:
        environments.interpreter(*raster.CONVERTER)
    except LoamError as problem:
        pytest.skip(problem.line())
    written = builder.build(typed(synthetic_results.tour()), tmp_path, formats=("svg", "png"))
    stems = sorted(file.stem for file in written["svg"].glob("*.svg"))
    assert stems == sorted(file.stem for file in written["png"].glob("*.png")) and stems
    for stem in stems:
        assert (written["png"] / f"{stem}.png").read_bytes().startswith(b"\x89PNG\r\n")


def test_words_of_a_sheet_stay_inside() -> None:
    panel = svg.Drawing("p", "t", "d", 382, 100, "<path d='M0,0'/>")
    keys = [svg.Key(f"a cause of some length {index}", "#123456") for index in range(5)]
    root = ET.fromstring(svg.sheet("A title " * 30, [svg.Row("row " * 90, [("caption " * 40, panel)])], keys))
    texts = [element for element in root.iter() if element.tag.endswith("text")]
    assert len(texts) == 8
    for text in texts:
        size = float((text.get("font-size") or "0").removesuffix("px"))
        assert float(text.get("x") or 0) + 0.5 * size * len(text.text or "") < float(root.get("width") or 0)
    assert len({text.get("y") for text in texts[1:6]}) == 3


def test_the_answer_comes_first(built: dict[str, dict[str, Path]]) -> None:
    page = built["tour"]["html"].read_text()
    anchors = re.findall(r'<section id="([a-z]+)"', page)
    assert anchors == [
        "answer",
        "overview",
        "throughput",
        "aborts",
        "mapping",
        "effect",
        "warnings",
        "limits",
        "machine",
        "numbers",
        "repeat",
    ]
    answer = page[page.index('id="answer"') : page.index('id="overview"')]
    for headline in synthetic_results.tour()["headlines"]:
        assert headline["best"] in answer and headline["worst"] in answer
        assert f"{headline['ratio']['estimate']:.2f}" in answer
    assert "Machine fit for differences above" in answer


def test_every_cell_is_in_the_csv(built: dict[str, dict[str, Path]]) -> None:
    for name, make in MAKERS.items():
        result = make()
        rows = list(csv.DictReader(io.StringIO(built[name]["csv"].read_text())))
        for cell in result["cells"]:
            mine = [row for row in rows if _same_cell(row, cell)]
            assert mine, cell["factors"]
            assert {row["verdict"] for row in mine} == {cell["verdict"]}
            for metric, value in cell["metrics"].items():
                (row,) = [row for row in mine if row["metric"] == metric]
                assert float(row["estimate"]) == value["estimate"]
                assert row["unit"] == value["unit"] and row["better"] == value["better"]
                assert row["low"] == ("" if value["low"] is None else row["low"])
            if cell["ratio_to_baseline"]:
                (row,) = [row for row in mine if row["metric"].endswith("_to_baseline")]
                assert float(row["high"]) == pytest.approx(cell["ratio_to_baseline"]["high"], rel=1e-12)
            for cause, number in (cell["blame"] or {}).items():
                (row,) = [row for row in mine if row["metric"] == f"blame.{cause}"]
                assert float(row["estimate"]) == number


def _same_cell(row: dict[str, str], cell: dict[str, Any]) -> bool:
    factors = cell["factors"]
    return (
        all(row[key] == str(factors[key]) for key in ("workload", "allocator", "sync", "machine", "threads"))
        and row["copy"] == str(cell["copy"])
        and all(row[f"parameter.{key}"] == str(value) for key, value in cell["parameters"].items())
    )


def test_hostile_text_stays_text(built: dict[str, dict[str, Path]]) -> None:
    page = built["hostile"]["html"].read_text()
    assert page.count("<script") == 1 and "<img" not in page
    parser = parse(page)
    assert any(synthetic_results.HOSTILE in text for text in parser.text)
    assert "Content-Security-Policy" in page
    markdown = built["hostile"]["md"].read_text()
    fenced = re.sub(r"(?ms)^(`{3,})sh\n.*?\n\1$", "", markdown)
    assert not re.search(r"(?<!\\)<", fenced)


def test_control_characters_do_not_reach_the_files(tmp_path: Path) -> None:
    result = synthetic_results.ad_hoc()
    name = "je\x00mal\x1b[31mloc\u202e\ud800"
    for cell in result["cells"]:
        if cell["factors"]["allocator"] == "jemalloc":
            cell["factors"]["allocator"] = name
    result["command"] = "./loam \x07"
    for path in report.build(typed(result), tmp_path, formats=("html", "csv", "md", "svg")).values():
        for file in [path] if path.is_file() else path.iterdir():
            assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202e]", file.read_text()), file


def test_many_blocks_are_shown_by_the_first_ones() -> None:
    result = synthetic_results.ad_hoc()
    for cell in result["cells"]:
        for metric in cell["metrics"].values():
            metric["values"] *= view.VALUES_MAX
    shown = view.read(typed(result)).cells
    assert {len(metric.values) for cell in shown for metric in cell.metrics.values()} == {view.VALUES_MAX}


def test_what_is_missing_is_said(built: dict[str, dict[str, Path]]) -> None:
    page = built["troubled"]["html"].read_text()
    assert "4 of 77 cells are incomplete" in page
    text = " ".join(parse(page).text)
    for word in (
        "failed",
        "unproven",
        "skipped",
        "not measured",
        "no blame run",
        "SIGSEGV",
        "no end record after 30 s",
    ):
        assert word in text, word
    assert "malloc is provided by libc.so.6" in text
    for number in ("nan", "None", "inf "):
        assert number not in text


def test_ties_are_told(tmp_path: Path) -> None:
    result = synthetic_results.tour()
    result["headlines"][1].update(verdict="equivalent", ratio={"estimate": 1.004, "low": 0.998, "high": 1.01})
    result["headlines"][3].update(verdict="better", rough=True, ratio={"estimate": 1.2, "low": 1.1, "high": 1.3})
    result["headlines"][5].update(verdict="inconclusive", p_holm=0.4)
    study = view.read(typed(result))
    answers = findings.answers(study)
    assert [answer.level for answer in answers] == [False, True, False, False, False, True, False, False]
    assert [answer.rough for answer in answers] == [False, False, False, True, False, False, False, False]
    page = report.build(typed(result), tmp_path, formats=("html",))["html"].read_text()
    assert page.count("[1.10, 1.30], roughly") >= 1
    assert "In 2 of 6 cases best and worst are not told apart." in page
    assert page.count("no difference shown") == 1
    assert page.count("chance among so many cases is not excluded") == 1


def test_the_worst_is_not_tied_with_the_best_it_was_told_apart_from() -> None:
    """On a noisy machine their intervals against the baseline overlap, while they differ in every block."""
    result = synthetic_results.tour()
    for cell in result["cells"]:
        if cell["ratio_to_baseline"]:
            cell["ratio_to_baseline"].update(low=0.1, high=9.0)
    answers = findings.answers(view.read(typed(result)))
    assert all(answer.ties and answer.worst not in answer.ties for answer in answers if not answer.level)


def test_answers_without_headlines_lean_on_the_baseline() -> None:
    study = view.read(typed(synthetic_results.ad_hoc()))
    answers = findings.answers(study)
    assert [answer.best for answer in answers] == ["jemalloc", "jemalloc"]
    assert answers[0].ratio == study.groups[0].cells[1].ratio_to_baseline
    # Less time is better: the winner is the one with the smallest estimate.
    slow = findings.answers(view.read(typed(synthetic_results.bench())))
    assert (slow[0].best, slow[0].worst) == ("glibc", "mimalloc")
    assert slow[0].ratio.estimate is not None and slow[0].ratio.estimate > 1
    assert findings.answer_sentence(slow[0]).startswith("mimalloc has 1.1")
    assert "the wall time of glibc" in findings.answer_sentence(slow[0])


def test_placement_is_gone_with_shadow_records(built: dict[str, dict[str, Path]]) -> None:
    page = built["tour"]["html"].read_text()
    assert re.search(r"with shadow records none of [\d\u202f]+ aborts came from placement alone", page)
    assert len(re.findall(r"Shadow records: none of [\d\u202f]+ aborts is due to placement", page)) == 3


def test_like_warnings_of_many_cells_become_one() -> None:
    result = synthetic_results.tour()
    for index, cell in enumerate(result["cells"][:20]):
        cell["warnings"] = [
            f"the interval is {5 + index / 10} % wide; inconclusive; about {index} times as many blocks"
        ]
    result["cells"][30]["warnings"] = ["glibc 2.36 is old; a; b; c; d"]
    merged = warning_list.warnings(view.read(typed(result)))
    assert len(merged) == 3 and merged[0].places == ()
    assert (
        merged[1].fact == "the interval is 5.0 to 6.9 % wide" and merged[1].step == "about 0 to 19 times as many blocks"
    )
    assert len(merged[1].places) == 20
    assert (merged[2].fact, merged[2].consequence, merged[2].step) == ("glibc 2.36 is old", "a; b; c", "d")


def test_one_interrupted_run_does_not_squeeze_the_figure(tmp_path: Path) -> None:
    result = synthetic_results.bench()
    result["cells"][2]["metrics"]["wall_s"]["values"][4] = 9.0
    group = view.read(typed(result)).groups[0]
    domain = charts.throughput_domain([group])
    assert domain is not None and domain[1] < 1
    page = report.build(typed(result), tmp_path, formats=("html",))["html"].read_text()
    assert "jemalloc: 1 of 10 blocks beyond the axis, up to 9" in page


def test_panels_beside_each_other() -> None:
    tour = view.read(typed(synthetic_results.tour()))
    assert [case.title for case in tour.cases] == [
        "intset, sorted list", "intset, hash set", "intset, red-black tree", "threadtest",
    ]  # fmt: skip
    assert tour.cases[0].labels == ("record table", "shadow records")
    assert tour.cases[3].labels == ("16\u00a0B blocks", "64\u00a0B blocks")
    assert len(tour.references) == 3
    assert view.reference_of(tour.cases[1].groups[0], tour) is tour.references[1]
    assert view.read(typed(synthetic_results.ad_hoc())).cases[0].labels == ("1\u00a0thread", "2\u00a0threads")


def test_panels_of_the_same_work_have_one_axis_and_others_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    domains: dict[str, list[tuple[float, float]]] = {}
    draw = charts.throughput

    def noted(study: Any, case: Any, group: Any, name: str, domain: tuple[float, float], scale: Any) -> svg.Drawing:
        domains.setdefault(case.title, []).append(domain)
        return draw(study, case, group, name, domain, scale)

    monkeypatch.setattr(charts, "throughput", noted)
    tour = view.read(typed(synthetic_results.tour()))
    figures.draw(tour)
    several = [case for case in tour.cases if len(case.groups) > 1]
    assert {case.same_work for case in several} == {True, False}
    for case in several:
        used = domains[case.title]
        assert len(used) == len(case.groups)
        assert (len(set(used)) == 1) == case.same_work, case.title
        own = [charts.throughput_domain((group,)) for group in case.groups]
        assert len(set(own)) > 1, "with axes of their own they would differ"


def test_a_parameter_is_called_as_its_workload_says() -> None:
    result = synthetic_results.tour()
    for cell in result["cells"]:
        if cell["factors"]["workload"] == "threadtest":
            cell["parameters"] = {**cell["parameters"], "size": {16: "small", 64: 400}[cell["parameters"]["size"]]}
    labels = (
        view.read(typed(result | {"units": {"threadtest": {"size": "1", "size=*": "size\u00a0{}"}}})).cases[3].labels
    )
    assert labels == ("size\u00a0small", "size\u00a0400")


def test_a_paired_comparison_says_what_it_compares_also_where_it_is_the_only_one() -> None:
    result = synthetic_results.tour()
    result["contrasts"] = [
        {**one, "what": "8 threads against 1 thread", "factor": "threads", "threads": 2, "parameters": {}}
        for one in result["contrasts"] if one["factor"] == "mapping" and one["parameters"]["structure"] == "list"
    ]  # fmt: skip
    study = view.read(typed(result))
    page = html.render(study, figures.draw(study))
    section = page[page.index('<section id="mapping">') :].partition("</section>")[0]
    assert "Paired comparisons" in section and "8 threads against 1 thread" in section.partition("<details")[0]
    assert '<a href="#mapping">Paired comparisons</a>' in page


def test_machines_never_meet_in_one_sentence() -> None:
    result = synthetic_results.tour()
    together = {finding.lead for finding in takeaways.take_home(view.read(typed(result)))}
    assert "Shadow against table" in together
    for cell in result["cells"]:
        if cell["parameters"].get("structure") == "tree":
            cell["factors"] = {**cell["factors"], "machine": "sim:two"}
    apart = {finding.lead for finding in takeaways.take_home(view.read(typed(result)))}
    assert {"Shadow against table, host", "Shadow against table, sim:two"} <= apart
    assert "Shadow against table" not in apart


def test_sentinel_and_its_copy_is_never_a_winner() -> None:
    result = synthetic_results.tour()
    for cell in result["cells"]:
        if cell["copy"]:
            cell["metrics"][cell["ratio_to_baseline"]["metric"]]["estimate"] *= 10
    study = view.read(typed(result))
    assert all("again" not in cell.name for group in study.groups for cell in findings.ranking(group))
    fit = findings.fitness(study)
    assert fit is not None and len(fit.copies) == 11 and fit.limit >= fit.typical > 0


def test_the_noise_of_the_machine_is_the_same_in_terminal_report_and_doctor() -> None:
    """By the lower end: 1 / 0.9 is further from 1 than 0.9 is."""
    assert Ends(1.0, 0.9, 1.05).reach == verdicts.reach(Interval(1.0, 0.9, 1.05, 10)) == pytest.approx(1 / 0.9 - 1)
    result = synthetic_results.tour()
    for cell in result["cells"]:
        if cell["copy"]:
            cell["ratio_to_baseline"] |= {"estimate": 1.0, "low": 0.9, "high": 1.05}
    study = view.read(typed(result))
    sentence = threats._noise(study)[0][1]
    assert (
        sentence.replace("\u00a0", " ")
        == f"two copies of {study.baseline} agree within {verdicts.percent(1 / 0.9 - 1)}"
    )
    fit = findings.fitness(study)
    assert fit is not None and "above 11.1\u00a0%" in takeaways.fitness_sentence(study, fit)


def test_the_least_that_is_a_result_still_makes_a_report(tmp_path: Path) -> None:
    cell = {"factors": {"workload": "w", "allocator": "a"}}
    for cells in ([], [cell]):
        written = report.build(typed({"schema": SCHEMA, "cells": cells}), tmp_path / str(len(cells)))
        parse(written["html"].read_text())
        assert "No cell of this result holds a comparison" in written["html"].read_text()
        assert len(written["csv"].read_text().splitlines()) == 1 + len(cells)


def test_a_recommendation_leads(tmp_path: Path) -> None:
    result = synthetic_results.bench()
    result["recommendation"] = {"allocator": "tbb", "text": "Use tbb.", "command": "LD_PRELOAD=x python3"}
    page = report.build(typed(result), tmp_path, formats=("html",))["html"].read_text()
    assert page.index("Use tbb.") < page.index("Speed, command") < page.index("LD_PRELOAD=x python3")
    assert '<a href="#throughput">Wall time</a>' in page


def test_settings_found_follow_the_recommendation(tmp_path: Path) -> None:
    result = synthetic_results.bench()
    result["recommendation"] = {"allocator": "tbb", "text": "Use tbb.", "command": "LD_PRELOAD=x python3"}
    result["search"] = {"text": "Use tbb:a=1.", "winner": {"command": "A=1 LD_PRELOAD=x python3"}}
    page = report.build(typed(result), tmp_path, formats=("html",))["html"].read_text()
    assert page.index("Use tbb.") < page.index("Use tbb:a=1.") < page.index("A=1 LD_PRELOAD=x python3")
    result["search"] = {"text": "No setting was shown to help.", "winner": None}
    assert (
        "No setting was shown to help." in report.build(typed(result), tmp_path, formats=("html",))["html"].read_text()
    )


def test_a_result_of_ten_thousand_records_is_reported_in_three_seconds(tmp_path: Path) -> None:
    result = synthetic_study.large()
    assert len(result["cells"]) >= 300 and sum(cell["runs"] for cell in result["cells"]) >= 9_900
    (tmp_path / "result.json").write_text(json.dumps(result))
    start = time.process_time()
    written = commands.report(tmp_path)
    # CPU time, not wall: the machine may be busy with other tests.
    assert time.process_time() - start < 3
    assert written["html"].stat().st_size < 5_000_000


def test_tour_report_takes_a_few_seconds_of_one_core(tmp_path: Path) -> None:
    result = synthetic_results.tour()
    start = time.process_time()
    report.build(typed(result), tmp_path)
    # CPU time, not wall: the machine may be busy with other tests.
    assert time.process_time() - start < 8
