"""`loam page` and `loam selfcheck`: what there is, and what a mistyped line is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from loam_lab.base import paths, subcommands
from loam_lab.base.errors import LoamError
from loam_lab.cli import main


def test_every_page_has_a_subject_of_its_name() -> None:
    written = {file.stem for file in (paths.root() / "docs" / "performance").glob("*.md")}
    by_hand = written - set(subcommands.listed("presenting.pages"))
    assert by_hand <= {"README"}, "a page without a command that writes it"


def test_a_listing_shows_names_and_what_they_do(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["page"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(subcommands.listed("presenting.pages"))
    assert all(len(line.split()) > 3 for line in lines)


def test_a_listing_is_json_where_asked(capsys: pytest.CaptureFixture[str]) -> None:
    for line, key, package in (("page", "pages", "presenting.pages"), ("selfcheck", "checks", "dev.selfcheck")):
        assert main.run([line, "--json"]) == 0
        entries = json.loads(capsys.readouterr().out)[key]
        assert {one["name"]: one["summary"] for one in entries} == subcommands.listed(package)


@pytest.mark.parametrize("name", subcommands.listed("dev.selfcheck"))
def test_every_check_has_json(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["selfcheck", name, "--help"]) == 0
    assert " --json " in capsys.readouterr().out


def test_a_check_prints_one_document(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main.run(["selfcheck", "volume", "--records", "100", "--keep", str(tmp_path / "kept"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["records"] >= 90 and document["rss_peak_bytes"] > 1 << 20 and len(document["steps"]) == 4
    assert main.run(["selfcheck", "detection", "--minutes", "0", "--out", str(tmp_path), "--json"]) == 3
    assert {row["kept"] for row in json.loads(capsys.readouterr().out)["rows"]} == {None}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (["page", "mallok"], "did you mean malloc?"),
        (["selfcheck", "coverag"], "did you mean coverage?"),
        (["page", "malloc", "--foo"], "unrecognized arguments: --foo"),
        (["page", "malloc", "/nowhere"], "no such file or folder"),
    ],
)
def test_a_mistyped_line_is_an_error_of_ours(line: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(line) == 2
    assert message in capsys.readouterr().err


def test_a_subject_has_its_own_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["page", "malloc", "--help"]) == 0
    assert "--ours" in capsys.readouterr().out


def test_options_are_checked_before_anything_is_done(tmp_path: Path) -> None:
    for text, message in (("many", "must be a whole number"), ("0", "at least 1"), ("-3", "at least 1")):
        with pytest.raises(LoamError, match=f"--records: {text}: {message}"):
            subcommands.run("dev.selfcheck", "check", ["volume", "--records", text, "--keep", str(tmp_path)])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "line",
    ["coverage --replicates", "slices --studies", "detection --studies", "simulated --blocks", "volume --machines"],
)
def test_a_check_of_nothing_is_refused(line: str) -> None:
    with pytest.raises(LoamError, match="at least 1 is needed"):
        subcommands.run("dev.selfcheck", "check", [*line.split(), "0"])


@pytest.mark.parametrize("page", ["privatization", "tm"])
def test_commands_in_a_help_are_those_of_the_module(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A line that goes on is shown as such, so that it can be copied into a shell."""
    assert main.run(["page", page, "--help"]) == 0
    output = capsys.readouterr().out
    module = (paths.root() / "lab" / "loam_lab" / "presenting" / "pages" / f"{page}.py").read_text()
    assert output.count(" \\\n        -") == module.count(" \\\\\n        -") > 0


def test_a_page_is_not_made_of_a_result_of_another_schema(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text('{"schema": 1}')
    with pytest.raises(LoamError, match="has schema 1"):
        subcommands.run("presenting.pages", "page", ["malloc", str(tmp_path), "--page", str(tmp_path / "p.md")])
    assert not (tmp_path / "p.md").exists()
