"""bench: any command under every allocator; what it says, and what it refuses."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from campaigns import FakeInstruments, asking, stated_times
from msgspec.structs import replace
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.commands import campaign
from loam_lab.commands.bench import bench, equivalence, job_options, recommend, tables
from loam_lab.commands.bench.job import Job
from loam_lab.judging.statistics.intervals import Interval
from loam_lab.model.result import Choice, Recommendation
from loam_lab.model.store import journal

# Under the made-up allocator "fast" the command says that it took less; see campaigns.stated_times.
TOLD = "case $FAKE_ALLOCATOR in fast) echo took 0.05 ;; *) echo took 0.10 ;; esac >&2"


def run(
    folder: Path, command: list[str], *, unproven: frozenset[str] = frozenset(), **options: Any
) -> tuple[int, dict[str, Any]]:
    options = {"allocators": ["plain", "fast"], "blocks": 6, "as_json": True, **options}
    request = asking(out=folder, report=False, **options)
    status = bench.bench(command, request, FakeInstruments(unproven=unproven))
    return status, json.loads((folder / "result.json").read_text())


def test_a_faster_allocator_is_found_and_every_figure_is_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stated_times(monkeypatch)
    status, result = run(tmp_path / "o", ["sh", "-c", TOLD])
    assert status == 0
    printed, progress = capsys.readouterr()
    assert json.loads(printed) == result
    assert "18 runs" in progress
    fast = next(cell for cell in result["cells"] if cell["factors"]["allocator"] == "fast")
    assert fast["ratio_to_baseline"]["metric"] == "wall_s"
    assert fast["ratio_to_baseline"]["estimate"] == pytest.approx(0.5, rel=0.02)
    for metric in ("wall_s", "user_s", "system_s", "faults_minor", "faults_major"):
        assert len(fast["metrics"][metric]["values"]) == 6
    assert result["primary_metrics"] == {"sh": "wall_s"}
    assert result["commands"][0].startswith("./loam bench --allocator plain,fast -- sh -c")
    assert equivalence.find(tmp_path / "o", "wall_s") == {"sh -c " + shlex.quote(TOLD): set()}, "told apart"


def test_allocators_that_are_alike_are_not_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The name of the first one that was as fast as any is advised, whichever was a little faster."""
    stated_times(monkeypatch)
    command = ["sh", "-c", "case $FAKE_ALLOCATOR in plain) echo took 0.10 ;; *) echo took 0.05 ;; esac >&2"]
    for number, names in enumerate((["plain", "one", "other"], ["plain", "other", "one"])):
        folder = tmp_path / str(number)
        _, result = run(folder, command, allocators=names, blocks=8)
        assert equivalence.find(folder, "wall_s") == {shlex.join(command): {frozenset({"one", "other"})}}
        assert result["recommendation"]["allocator"] == names[1]
        assert f"{names[2]} may do as well" in result["recommendation"]["text"]


def test_a_command_that_fails_or_does_not_exist_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(LoamError, match=r"bench=no-such-program: no such program"):
        run(tmp_path / "a", ["no-such-program"])
    with pytest.raises(LoamError, match="is not executable"):
        run(tmp_path / "b", [__file__])
    with pytest.raises(LoamError, match=r"ended with status 3: why.*must end with status 0") as caught:
        run(tmp_path / "c", ["sh", "-c", "echo why >&2; exit 3"])
    assert caught.value.exit_code == 1
    with pytest.raises(LoamError, match="ended by SIGSEGV"):
        run(tmp_path / "d", ["sh", "-c", "kill -SEGV $$"])
    with pytest.raises(LoamError, match="did not end within"):
        run(tmp_path / "e", ["sleep", "30"], timeout_s=0.2)
    assert not any((tmp_path / name).exists() for name in "abcde"), "nothing is left behind"


def test_commands_are_counted_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = [
        {"source": "perf_event", "counts": False, "why": "no such counter"},
        {"source": "callgrind", "counts": True, "why": ""},
        {"source": "cachegrind", "counts": True, "why": ""},
    ]
    monkeypatch.setattr(campaign, "counter_sources", lambda study: here if study.counters else [])
    status, result = run(tmp_path / "o", ["/bin/true"], counters=True, blocks=1, as_json=False)
    assert status == 0
    for cell in result["cells"]:
        expected = [] if cell["copy"] else [("callgrind", "run"), ("cachegrind", "run")]
        assert [(counted["source"], counted["per"]) for counted in cell["counters"]] == expected
        assert all(counted["instructions"] > 10_000 for counted in cell["counters"])
    assert result["commands"][0] == "./loam bench --allocator plain,fast --counters -- /bin/true"
    assert any("instructions come from callgrind" in warning for warning in result["warnings"])
    assert capsys.readouterr().out.count("Counts") == 1


def test_without_a_proven_baseline_nothing_is_recommended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, result = run(tmp_path / "o", ["sh", "-c", TOLD], unproven=frozenset({"plain", "fast"}), as_json=False)
    text = result["recommendation"]["text"]
    assert "it was not proven that plain and fast served the command (made up). Every comparison needs that" in text
    printed = capsys.readouterr().out
    assert "for speed" not in printed and "LD_PRELOAD" not in printed


def test_a_crash_under_one_allocator_is_a_result(tmp_path: Path) -> None:
    status, result = run(tmp_path / "o", ["sh", "-c", "[ $FAKE_ALLOCATOR = fast ] && kill -ABRT $$; true"])
    assert status == 1
    (failure,) = result["failures"]
    assert (failure["state"], failure["count"], failure["detail"]) == ("signal", 6, "ended by SIGABRT")
    assert result["recommendation"]["allocator"] == "plain"


def test_an_unproven_allocator_is_never_recommended(tmp_path: Path) -> None:
    _, result = run(tmp_path / "o", ["sh", "-c", TOLD], unproven=frozenset({"fast"}))
    advice = result["recommendation"]
    assert (advice["allocator"], advice["command"], advice["lines"], advice.get("choices")) == ("", "", {}, None)
    start = "Nothing is recommended: it was not proven that fast served the command (made up). Or compare without it: name the "
    assert advice["text"] == start + "others with --allocator."
    assert {cell["verdict"] for cell in result["cells"] if cell["factors"]["allocator"] == "fast"} == {"unproven"}


def test_an_interrupted_measurement_without_values_sends_nobody_to_failures() -> None:
    cells = [
        {"copy": copy, "state": "skipped", "factors": {"allocator": name, "workload": "sh", "sync": "command",
         "machine": "host", "threads": 1}, "parameters": {}, "metrics": {}}
        for name, copy in (("plain", 0), ("plain", 1), ("fast", 0))
    ]  # fmt: skip
    result = typed({"baseline": "plain", "primary_metrics": {"sh": "wall_s"}, "cells": cells, "failures": []})
    advised = recommend.add(result, "sh").recommendation
    assert advised is not None and advised.text == "Nothing could be compared with plain: too little was measured."


def test_an_export_takes_the_place_of_the_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "a", ["true"], as_json=False, export="csv")
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.startswith("study,") and "metric" in head.split(",")
    assert any(",fast," in row and ",wall_s," in row for row in rows)
    run(tmp_path / "b", ["true"], as_json=False, export="markdown")
    text = capsys.readouterr().out
    assert text.startswith("# ") and "| fast |" in text and "## Repeat it" in text


def test_a_command_that_fails_can_be_measured_all_the_same(tmp_path: Path) -> None:
    options: dict[str, Any] = dict.fromkeys(("server", "ready", "load", "metric", "better", "command_file"))
    options |= {
        "commands": (),
        "prepare": "",
        "cleanup": "",
        "checks": (),
        "warmup": 0,
        "limits": (),
        "timeout_s": 20.0,
    }
    what = job_options.what(["sh", "-c", "exit 3"], **options, ignore_failure=True)
    assert isinstance(what, Job) and "--ignore-failure" in what.options()
    request = asking(allocators=["plain", "fast"], blocks=6, out=tmp_path / "o", report=False)
    status = bench.bench(what, request, FakeInstruments())
    assert status == 0 and json.loads((tmp_path / "o" / "result.json").read_text())["failures"] == []
    killed = job_options.what(["sh", "-c", "kill -SEGV $$"], **options, ignore_failure=True)
    with pytest.raises(LoamError, match="ended by SIGSEGV"):
        bench.bench(killed, asking(allocators=["plain"], out=tmp_path / "p", report=False), FakeInstruments())
    with pytest.raises(LoamError, match="belongs to a command"):
        job_options.what((), **{**options, "server": "cat"}, ignore_failure=True)


def test_time_budget_and_narrow_intervals_bound_the_blocks(tmp_path: Path) -> None:
    assert bench._blocks(90, 10) == 10
    assert bench._blocks(90, 3) == 30
    assert bench._blocks(90, 0.01) == 60
    assert bench._limits(90, 3, 7) == {"blocks": 7, "budget_s": None}
    assert bench._limits(90, 3, None) == {"blocks": 30, "budget_s": 90}
    assert bench._limits(90, 20, None) == {"blocks": 10, "budget_s": pytest.approx(220)}
    _, result = run(tmp_path / "o", ["sleep", "0.02"], blocks=None, budget_s=2.0, allocators=["plain"])
    assert 10 <= result["blocks"] <= 60


def test_resume_goes_on_where_it_stopped(tmp_path: Path) -> None:
    command = ["sh", "-c", "true"]
    run(tmp_path / "o", command)
    file = tmp_path / "o" / "journal" / "local.jsonl"
    rows = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(rows[:7]))
    run(tmp_path / "o", command, resume=True)
    assert len(journal.read(tmp_path / "o")) == len(rows)
    with pytest.raises(LoamError, match=r"plan\.study\.(title|question)"):
        run(tmp_path / "o", ["sh", "-c", "false || true"], resume=True)


def test_variables_that_change_an_allocator_are_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("MY_OWN", "kept")
    _, result = run(tmp_path / "o", ["sh", "-c", '[ -z "$MALLOC_ARENA_MAX" ] && [ "$MY_OWN" = kept ]'])
    assert result["failures"] == []
    assert any("MALLOC_ARENA_MAX of your environment is not passed on" in warning for warning in result["warnings"])


def cell(name: str, estimate: float, half: float, verdict: str, rss: float = 100.0, p: float = 0.001) -> dict[str, Any]:
    ratio = {"metric": "wall_s", "estimate": estimate, "low": estimate - half, "high": estimate + half, "n": 10, "p": p}
    return {
        "factors": {"allocator": name}, "copy": 0, "verdict": verdict,
        "ratio_to_baseline": None if verdict == "baseline" else ratio,
        "metrics": {"rss_peak_bytes": {"estimate": rss}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("rivals", "allocator", "pattern"),
    [
        ([cell("a", 0.8, 0.01, "better", 150)], "a", r"Use a: .* 20\.0 % less time .*\[19\.0 %, 21\.0 %\] and needs 50\.0 %"),
        ([cell("a", 0.8, 0.01, "better"), cell("b", 0.805, 0.01, "better")], "a", r"b may do as well"),
        ([cell("a", 1.0, 0.01, "equivalent")], "g", r"Stay with g: no allocator was shown to be faster"),
        ([cell("a", 1.3, 0.01, "worse")], "g", r"Stay with g"),
        ([cell("a", 0.8, 0.05, "better")], "a", r"20\.0 % less time than with g \[15\.0 %, 25\.0 %\], roughly\.$"),
        ([cell("a", 0.8, 0.05, "better", 150)], "a", r"roughly, and needs 50\.0 % more memory"),
        ([cell("a", 0.99, 0.03, "inconclusive", p=0.4)], "g", r"no other .* more than 4\.0 % of the time\. .*: --blocks 25\."),
        ([cell("a", 0.9, 0.15, "inconclusive", p=0.2)], "g", r"more than 25\.0 % .*: --blocks 60, for diff.* 13\.6 %"),
        ([cell("a", 0.8, 0.05, "better", p=0.06)], "g", r"Stay with g: no allocator was shown to be faster\. .* 25\.0 %"),
        ([cell("a", 0.97, 0.005, "better", p=0.06)], "g", r"Stay with g: no allocator was shown"),
        ([], "g", r"g alone was measured; name others"),
    ],
)  # fmt: skip
def test_recommendations(rivals: list[dict[str, Any]], allocator: str, pattern: str) -> None:
    memory = {
        one["factors"]["allocator"]: Interval(one["metrics"]["rss_peak_bytes"]["estimate"] / 100, None, None, 10)
        for one in rivals
    }
    result: dict[str, Any] = {"baseline": "g", "blocks": 10, "cells": [cell("g", 1, 0, "baseline"), *rivals]}
    result = recommend.add(typed(result), "cmd", memory).as_json()
    assert result["recommendation"]["allocator"] == allocator
    assert re.search(pattern, result["recommendation"]["text"])


def test_advice_on_blocks_is_bounded() -> None:
    """Whatever the noise: never more blocks than somebody would wait for."""
    for half in (0.01, 0.1, 0.5, 0.9):
        for blocks in (10, 20, 31, 60):
            rival = cell("a", 1.0, half, "inconclusive", p=0.5)
            rival["ratio_to_baseline"]["n"] = blocks
            result: dict[str, Any] = {"baseline": "g", "blocks": blocks, "cells": [cell("g", 1, 0, "baseline"), rival]}
            result = recommend.add(typed(result), "cmd").as_json()
            asked = [int(number) for number in re.findall(r"--blocks (\d+)", result["recommendation"]["text"])]
            assert all(blocks < number <= 60 for number in asked), (half, blocks, asked)


def waited(wall: tuple[float, float], processor: tuple[float, float], verdict: str, p: float = 0.001) -> dict[str, Any]:
    """A result whose command waited: one rival by wall and by processor time, each (estimate, half width)."""
    rival = cell("a", *wall, "inconclusive", p=0.5)
    estimate, half = processor
    rival["processor_ratio"] = {
        "metric": "processor_s", "estimate": estimate, "low": estimate - half, "high": estimate + half, "n": 10, "p": p,
        "q": p, "verdict": verdict, "rough": False,
    }  # fmt: skip
    waiting = {"blocks": 10, "disturbed": 7, "decides": "processor_s"}
    return {"baseline": "g", "blocks": 10, "cells": [cell("g", 1, 0, "baseline"), rival], "waiting": waiting}


@pytest.mark.parametrize(
    ("result", "allocator", "pattern"),
    [
        (waited((0.95, 0.3), (0.8, 0.01), "better"), "a", r"Use a: .* needs 20\.0 % less processor time than with g \["),
        (waited((0.95, 0.3), (1.0, 0.01), "equivalent", 0.6), "g", r"Stay with g: .* shown to be faster by more than"),
        (waited((0.95, 0.3), (1.0, 0.03), "inconclusive", 0.6), "g", r"a equals g within 3\.1 %, while by wall time .* 53\.8 %"),
        (waited((0.95, 0.3), (1.0, 0.03), "inconclusive", 0.6), "g", r"would tell more: a quiet machine \(\./loam doctor"),
        (waited((0.95, 0.3), (0.8, 0.01), "better"), "a", r"Processor time .* waiting for a processor in 7 of 10 blocks\.$"),
    ],
)  # fmt: skip
def test_processor_time_decides_where_the_command_waited(result: dict[str, Any], allocator: str, pattern: str) -> None:
    result = recommend.add(typed(result), "cmd").as_json()
    assert (result["recommendation"]["allocator"], result["recommendation"]["by"]) == (allocator, "processor_s")
    assert re.search(pattern, result["recommendation"]["text"]), result["recommendation"]["text"]


def test_of_a_server_nothing_is_said_about_a_command() -> None:
    for processor, verdict, p in (((0.8, 0.01), "better", 0.001), ((1.0, 0.03), "inconclusive", 0.6)):
        result = {**waited((0.95, 0.3), processor, verdict, p), "primary_metrics": {"redis": "requests_per_s"}}
        text = recommend.add(typed(result), "cmd").as_json()["recommendation"]["text"]
        assert "command" not in text and "wall time" not in text, text
        assert "kept the server waiting" in text


def test_a_choice_that_is_not_the_recommendation_has_a_line_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    """Who wants less memory is told what to paste, also where the recommendation is to stay."""
    names = {"speed": "glibc", "memory": "glibc:tcache=0", "both": "glibc:tcache=0"}
    choices = [Choice(purpose, name, name) for purpose, name in names.items()]
    advised = Recommendation("glibc", "Stay with glibc.", "server", choices=choices)
    bare: dict[str, Any] = {"baseline": "glibc", "blocks": 10, "cells": [cell("glibc", 1, 0, "baseline")]}
    with_lines = bench._with_lines(advised, "server", typed(bare))
    assert with_lines is not None
    line = "GLIBC_TUNABLES=glibc.malloc.tcache_count=0 server"
    assert [choice.command for choice in with_lines] == [None, line, line]
    assert bench._with_lines(replace(advised, allocator="glibc:tcache=0"), "server", typed(bare)) == choices
    assert bench._with_lines(replace(advised, choices=None), "server", typed(bare)) is None
    tables._advice(replace(advised, choices=with_lines), "glibc")
    assert capsys.readouterr().out.count(f"  {line}\n") == 1, "once for both"
