"""loam explain: reading and grouping of made-up records, symbols of a made program, and a real run."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from campaigns import asking
from conflicts import BASE, FIND, INSERT, PLACES, REMOVE, conflict, footprint

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.cli import main
from loam_lab.commands.explain import commands, evidence, grouping, placement, run, story
from loam_lab.model import functions
from loam_lab.model.description import Description
from loam_lab.model.schema import SCHEMA
from loam_lab.setup import build
from loam_lab.subjects import symbols
from loam_lab.subjects.subject import Subject
from loam_lab.subjects.symbols import Frame
from loam_lab.subjects.workloads import Executable

# ---- reading


def test_a_footprint_in_several_records_is_one() -> None:
    first = footprint(1, [0, 8], [24], number=5)
    second = footprint(1, [64], [], number=5)
    unknown = {**footprint(1, [], [], number=5), "rows": [[0, 0, (BASE + 128) // 8, 0b101, 0b100]]}
    other = footprint(2, [8], [], number=6)
    read = evidence.read([first, other, second, unknown]).footprints
    assert [f.thread for f in read] == [1, 2]
    words = [0, 8, 24, 64, 128, 144]
    assert read[0].words.tolist() == [BASE + word for word in words]
    assert read[0].written.tolist() == [False, False, True, False, False, True]
    assert read[0].blocks.tolist() == [BASE, BASE, BASE + 16, BASE + 64, 0, 0]


def test_a_side_that_is_not_known_is_none() -> None:
    read = evidence.read([conflict("unknown", 0, 8, theirs={})]).conflicts[0]
    assert read.theirs is None and read.mine is not None and read.mine.offset == 0
    mine = {"word": BASE, "site": 0, "thread": 0}
    assert evidence.read([conflict("unknown", 0, 8, mine=mine)]).conflicts[0].mine == evidence.Party(BASE, 0, 0, None)


# ---- grouping


def test_blocks_are_grouped_by_how_they_lie_whoever_lost() -> None:
    lines = [
        conflict("other_block", 0, 24, weight=3),
        conflict("other_block", 56, 32, weight=2),  # the same with sides exchanged, elsewhere
        conflict("other_block", 64, 80),  # other offsets
        conflict("same_word", 8, 8, weight=4),
        conflict("other_stripe", 0, 1 << 25),
    ]
    groups = grouping.by_blocks(evidence.read(lines).conflicts, PLACES)
    pairs = [group.pair for group in groups]
    assert all(isinstance(pair, grouping.BlockPair) for pair in pairs)
    assert [group.weight for group in groups] == [5, 4, 1, 1]
    assert [group.share for group in groups] == [5 / 11, 4 / 11, 1 / 11, 1 / 11]
    first = pairs[0]
    assert isinstance(first, grouping.BlockPair)
    assert first.neighbours and first.apart == 16 and first.offsets == (0, 8)
    assert first.kinds == (grouping.Kind(16, INSERT), grouping.Kind(16, INSERT))
    assert story.blocks_in_words(first) == (
        "neighbouring blocks in one 32-byte stripe, words at +0 and +8, "
        "16-byte blocks made at structures/list.hpp:49 (List::insert)"
    )
    aliased = pairs[3]
    assert isinstance(aliased, grouping.BlockPair) and aliased.apart == 1 << 25 and not aliased.neighbours
    assert "0x2000000 bytes apart on one record" in story.blocks_in_words(aliased)


def test_blocks_with_a_gap_are_no_neighbours() -> None:
    far = conflict("other_block", 0, 48, shift=6)
    pair = grouping.by_blocks(evidence.read([far]).conflicts, PLACES)[0].pair
    assert isinstance(pair, grouping.BlockPair) and not pair.neighbours
    assert story.blocks_in_words(pair).startswith("blocks 48 bytes apart in one 64-byte stripe")


def test_lines_are_grouped_by_who_lost_to_whom() -> None:
    lines = [
        conflict("same_word", 8, 8, weight=2, won=3),
        conflict("other_block", 0, 16, weight=5, won=3),
        conflict("same_word", 8, 8, weight=4),
        conflict("unknown", 0, 8, theirs={}),
    ]
    groups = grouping.by_lines(evidence.read(lines).conflicts, PLACES)
    assert [(group.pair, group.weight) for group in groups] == [
        (grouping.LinePair(FIND, REMOVE), 7),
        (grouping.LinePair(FIND, INSERT), 4),
        (grouping.LinePair(FIND, symbols.UNKNOWN), 1),
    ]
    assert groups[0].parts == {"same_word": 2, "other_block": 5}


# ---- words


def prediction(shift: int, conflicting: float, **causes: float) -> placement.Prediction:
    return placement.Prediction("table", shift, conflicting, {**dict.fromkeys(placement.CAUSES, 0.0), **causes})


def test_the_headline_names_the_stripe_and_the_shift_that_helps() -> None:
    lines = [conflict("other_block", 0, 24, weight=63), conflict("same_word", 8, 8, weight=37)]
    groups = grouping.by_blocks(evidence.read(lines).conflicts, PLACES)
    predictions = [
        prediction(3, 0.5, same_word=1.0), prediction(4, 0.5, same_word=1.0),
        prediction(5, 0.8, same_word=0.625, other_block=0.375), prediction(6, 0.9, same_word=0.5, other_block=0.5),
    ]  # fmt: skip
    described = {"allocator": "jemalloc", "mapping": "table", "shift": 5}
    shares = {"other_block": 0.63, "same_word": 0.37}
    assert story.headline(shares, groups, predictions, described, {}) == [
        "63 % of the aborts are between neighbouring blocks (16-byte blocks made at structures/list.hpp:49 (List::insert)) "
        "that jemalloc puts into one 32-byte stripe.",
        "With shift 4 conflicts between different blocks would vanish: predicted in 0 % of the pairs of transactions "
        "instead of 30 %.",
    ]
    own = story.headline({"same_word": 1.0}, groups, predictions, described, {})
    assert own[0].startswith("100 % of the aborts are conflicts of the program's own")
    assert own[1].startswith("Placement is not to blame")


def test_shares_are_never_rounded_to_nothing() -> None:
    assert [story.percent(share) for share in (0, 0.0004, 0.004, 0.633, 1)] == [
        "0 %",
        "< 0.1 %",
        "0.4 %",
        "63 %",
        "100 %",
    ]


# ---- symbols


def test_functions_lose_their_types() -> None:
    assert (
        functions.short("bool loam::structures::SortedList::insert<Tx<false> >(Tx<false>&, long)")
        == "SortedList::insert"
    )
    assert functions.short("a::List::Place a::List::find<b::Tx>(b::Tx&, long) const") == "List::find"
    assert functions.short("operator()<loam::tm::EtlWb<true>::ReadOnlyTx>") == "lambda"
    assert functions.short("main") == "main"


def test_the_users_frame_is_the_innermost_outside_of_the_runtime() -> None:
    text = "0x10\nnote\n/r/runtime/tm/blame/explain.hpp:5\nfind\n/r/./structures/list.hpp:97 (discriminator 3)\n"
    text += "main\n/r/x.cpp:1\n0x20\n??\n??:0\n"
    chains = symbols.parse(text, Path("/r"))
    assert symbols.outside(chains[0x10]) == Frame("find", "structures/list.hpp", 97)
    # ccache with a base folder makes the compiler name headers through the build folder.
    assert symbols.relative("/r/build/release/../../runtime/tm/blame/explain.hpp", Path("/r")).startswith("runtime/tm")
    assert len(chains[0x10]) == 3 and symbols.outside(chains[0x20]) is None
    assert symbols.outside(chains[0x10][:1]) == Frame("note", "runtime/tm/blame/explain.hpp", 5)


@pytest.mark.skipif(not shutil.which("g++") or not shutil.which("addr2line"), reason="needs g++ and addr2line")
def test_a_return_address_is_the_line_of_its_call(tmp_path: Path) -> None:
    source = tmp_path / "x.cpp"
    source.write_text(
        "#include <cstdio>\n"
        "[[gnu::noipa]] void* here() { return __builtin_return_address(0); }\n"
        "[[gnu::always_inline]] inline void* inner() { return here(); }\n"
        "int main() {\n"
        '  std::printf("%p\\n", inner());\n'
        "}\n"
    )
    subprocess.run(["g++", "-O2", "-g1", "-no-pie", str(source), "-o", str(tmp_path / "x")], check=True)
    printed = subprocess.run([str(tmp_path / "x")], capture_output=True, text=True, check=True).stdout
    site = evidence.Site(4, "", int(printed, 16))
    place = symbols.places([site], tmp_path / "x", tmp_path)[4]
    assert place.frame == Frame("inner", "x.cpp", 3)
    assert [(frame.function, frame.line) for frame in place.chain] == [("inner", 3), ("main", 5)]
    assert symbols.places([evidence.Site(1, "/no/such/library.so", 4)], tmp_path / "x", tmp_path) == {}


# ---- the command


def executable(*, blame: bool = True, threads_max: int = 64) -> Executable:
    described = Description.model_validate({
        "schema": SCHEMA,
        "sync": {"name": "fake", "kind": "transactional", "threads_max": threads_max, "blame": blame},
        "workloads": [{"name": "intset", "kinds": ["transactional"],
                       "parameters": [{"name": "size", "type": "integer", "min": 1, "max": 9, "default": 1}],
                       "metrics": [{"name": "ops", "kind": "count"}]}],
    })  # fmt: skip
    return Executable("fake", Subject.of(Path("/nowhere/fake")), described, "id")


def asked(workload: str = "intset", **changed: Any) -> run.Asked:
    given: dict[str, Any] = {"allocator": "glibc", "executable": executable(), "every": 1}
    given |= {name: changed.pop(name) for name in list(changed) if name in given}
    request = asking(**{"threads": [2], "oversubscribe": True, **changed})
    return run.check(workload, request, **given)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"threads": [1]},
            "--threads=1: a single thread meets no other, so nothing is to be explained (use --threads 2 or",
        ),
        ({"threads": [65]}, "--threads=65: fake has threads_max 64"),
        ({"workload": "intest"}, "did you mean intset?"),
        ({"parameters": [("sise", ["1"])]}, "did you mean size?"),
        ({"parameters": [("size", ["1", "2"])]}, "-p size=1,2: explain takes one value of each parameter"),
        ({"parameters": [("size", ["10"])]}, "allowed are 1 to 9"),
    ],
)
def test_a_run_in_which_nothing_could_be_explained_is_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(LoamError, match=re.escape(message)):
        asked(**changed)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sync", "etl-wb,fake"], "--sync=etl-wb,fake: explain takes one value"),
        (["--allocator", "glibc,jemalloc"], "--allocator=glibc,jemalloc: explain takes one value"),
        (["--every", "0"], "--every=0: must be at least 1"),
        (["--threads", "0"], "--threads=0: must be at least 1"),
        (["-p", "list"], "-p=list: not of the form key=value"),
        (["--allocator", "jemaloc"], "did you mean jemalloc?"),
    ],
)
def test_bad_options_are_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert main.run(["explain", "intset", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.err and captured.err.count("\n") == 1 and captured.out == ""


def records(*lines: dict[str, Any], **counts: int) -> list[dict[str, Any]]:
    begin = {
        "kind": "begin",
        "sync": "fake",
        "tm": {"records_mapping": "table"},
        "parameters": {"shift": 5, "records_log2": 20},
    }
    return [begin, {"kind": "iteration", "index": 0, "tm": counts}, *lines, {"kind": "end"}]


def test_a_run_without_aborts_says_so_and_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    explained = commands.explanation(asked(), records(commits=50, attempts=50, aborts=0, aborts_same_word=0))
    assert explained["aborts"] == 0 and explained["shares"] == {} and explained["blocks"] == []
    commands.show(explained)
    text = capsys.readouterr().out
    assert "No transaction aborted in 50 commits: there is nothing to explain." in text and "update_percent" in text
    json.dumps(explained, allow_nan=False)


def test_the_explanation_counts_causes_and_samples_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        conflict("other_block", 0, 24, weight=30), conflict("same_word", 8, 8, weight=10),
        footprint(0, [0], [], number=1), footprint(1, [], [24], number=2),
    ]  # fmt: skip
    explained = commands.explanation(
        asked(), records(*lines, commits=60, attempts=100, aborts=40, aborts_other_block=30, aborts_same_word=10)
    )
    assert explained["shares"] == {"other_block": 0.75, "same_word": 0.25}
    assert [(group["cause"], group["share"], group["neighbours"]) for group in explained["blocks"]] == [
        ("other_block", 0.75, True),
        ("same_word", 0.25, False),
    ]
    assert [p["conflicting"] for p in explained["predictions"]] == [0, 0, 1, 1, 1, 1, 0, 0]
    assert explained["sampled"] == {"every": 1, "conflicts": 2, "transactions": 2}
    assert explained["words"][-1].startswith("Only 2 conflicts were recorded")
    json.dumps(explained, allow_nan=False)
    commands.show(explained, chains=True)
    text = capsys.readouterr().out
    assert text.index("75 % of the aborts are between neighbouring blocks") < text.index("Blocks that abort each other")
    assert "shift 5 (this run)" in text and "40 aborts in 100 attempts" in text


def test_a_record_of_another_form_is_an_error() -> None:
    with pytest.raises(LoamError, match="does not fit the schema"):
        commands.explanation(
            asked(), records({"kind": "conflict", "cause": "same_word"}, commits=1, aborts_same_word=1)
        )


@pytest.mark.slow
@pytest.mark.alone
def test_a_list_under_jemalloc_names_neighbouring_nodes_and_source_lines(capsys: pytest.CaptureFixture[str]) -> None:
    build.ensure_built(["etl-wb", "probe"])
    # Where others use the machine as well, the two threads may hardly meet: longer runs, then.
    for seconds in (2, 8):
        request = asking(
            allocators=["jemalloc"], threads=[2], oversubscribe=True, as_json=True,
            parameters=[("structure", ["list"]), ("duration_ms", [str(1000 * seconds)])],
        )  # fmt: skip
        status = commands.explain("intset", request)
        explained = json.loads(capsys.readouterr().out)
        assert status == 0
        if explained["sampled"]["conflicts"] >= 40:
            break
    assert explained["sampled"]["conflicts"] >= 40
    assert explained["causes"]["unknown"] <= 0.02 * explained["aborts"]
    assert explained["shares"]["other_block"] > 0.1
    neighbours = [group for group in explained["blocks"] if group["neighbours"]]
    assert sum(group["share"] for group in neighbours) > 0.1
    for group in neighbours:
        for side in group["blocks"]:
            assert side["bytes"] == 16 and side["made"]["file"] == "structures/sorted_list.hpp"
    text = (paths.root() / "structures/sorted_list.hpp").read_text().splitlines()
    for group in explained["lines"]:
        assert group["lost"]["file"] == group["won"]["file"] == "structures/sorted_list.hpp"
        assert "access.read" in text[group["lost"]["line"] - 1] or "access.write" in text[group["lost"]["line"] - 1]
        assert "access.write" in text[group["won"]["line"] - 1]
        assert any(frame["file"] == "workloads/transactional/intset.cpp" for frame in group["won"]["chain"])
    false = {
        (p["mapping"], p["shift"]): p["conflicting"] * (p["causes"]["other_block"] + p["causes"]["other_stripe"])
        for p in explained["predictions"]
    }
    assert false["table", 4] == false["shadow", 4] == 0 < false["table", 5] < false["table", 7]
    assert any("neighbouring blocks" in sentence and "jemalloc" in sentence for sentence in explained["words"])
