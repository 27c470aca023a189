"""A parameter scan: a command for each value, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from campaigns import FakeInstruments, asking

from loam_lab.base.errors import LoamError
from loam_lab.commands.bench import bench, job_options, scan
from loam_lab.commands.bench.job import Job


def what(command: list[str], scans: list[str], **changed: Any) -> object:
    options: dict[str, Any] = {
        "server": None, "ready": None, "load": None, "metric": None, "better": None, "commands": (), "command_file": None,
        "prepare": "", "cleanup": "", "checks": (), "warmup": 0, "limits": (), "timeout_s": None, "scans": scans, **changed,
    }  # fmt: skip
    return job_options.what(command, **options)


@pytest.mark.parametrize(
    ("scans", "values"),
    [
        (["n=1..3"], ["1", "2", "3"]),
        (["n=2..9:3"], ["2", "5", "8"]),
        (["n=-1..1"], ["-1", "0", "1"]),
        (["n=7..7"], ["7"]),
        (["n=64,a b,x.."], ["64", "a b", "x.."]),
        (["n=5"], ["5"]),
    ],
)
def test_each_value_is_a_command(scans: list[str], values: list[str]) -> None:
    assert scan.expanded(["sort", "--parallel={n}", "{m}{n}{n}"], scans) == [
        ["sort", f"--parallel={value}", f"{{m}}{value}{value}"] for value in values
    ]


def test_several_parameters_are_combined() -> None:
    commands = scan.expanded(["p", "{a}", "{b}"], ["a=1,2", "b=x,y"])
    assert commands == [["p", "1", "x"], ["p", "1", "y"], ["p", "2", "x"], ["p", "2", "y"]]


@pytest.mark.parametrize(
    ("scans", "message"),
    [
        (["threads"], r"--scan=threads: is not NAME=VALUES \(as in --scan threads=1\.\.8"),
        (["1=2"], "is not NAME=VALUES"),
        (["=2"], "is not NAME=VALUES"),
        (["n="], "has an empty value, or one twice"),
        (["n=1,,2"], "has an empty value"),
        (["n=1,2,1"], "or one twice"),
        (["n=3..1"], "has no values"),
        (["n=1..9:0"], "has no values"),
        (["n=1..100"], "or more than 64"),
        (["n=1..999999999999"], "or more than 64"),
        (["n=1..10", "m=1..10"], "--scan=100: commands are more than 64"),
        (["n=1", "n=2"], "--scan=n: is given twice"),
        (["threads=1..2"], r"no word of the command holds \{threads\}"),
    ],
)
def test_what_is_no_scan_is_refused(scans: list[str], message: str) -> None:
    with pytest.raises(LoamError, match=message):
        what(["true", "{n}", "{m}"], scans)


def test_a_scan_belongs_to_a_command() -> None:
    with pytest.raises(LoamError, match=r"--scan=n=1: belongs to a command"):
        what([], ["n=1"], server="cat", ready="1", load="true", metric="([0-9]+) per second")


def test_a_scanned_command_is_measured_for_each_value(tmp_path: Path) -> None:
    made = what(["sh", "-c", "exit $(({n} - {n}))"], ["n=1,2"])
    assert isinstance(made, Job) and list(made.commands) == ["sh -c 'exit $((1 - 1))'", "sh -c 'exit $((2 - 2))'"]
    request = asking(allocators=["plain"], blocks=1, out=tmp_path / "o", as_json=True, report=False)
    bench.bench(made, request, FakeInstruments())
    result = json.loads((tmp_path / "o" / "result.json").read_text())
    assert {cell["parameters"]["command"] for cell in result["cells"]} == set(made.commands)
    assert [one["of"] for one in result["recommendation"]["each"]] == list(made.commands)
