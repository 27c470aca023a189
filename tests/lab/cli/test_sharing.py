"""What leaves the machine: the citation says what the result says, the archive is whole, the same twice, and checked."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import synthetic_results
from typed import typed

from loam_lab.base.errors import LoamError
from loam_lab.cli import main
from loam_lab.commands import cite, pack


@pytest.fixture
def result(tmp_path: Path) -> Path:
    """A result's folder with a journal, a manifest, a lock and a link out of it."""
    folder = tmp_path / "results" / "tour-20261121T101213Z-5f3a"
    (folder / "journal").mkdir(parents=True)
    (folder / "result.json").write_text(json.dumps(synthetic_results.tour()))
    (folder / "journal" / "local.jsonl").write_text('{"state": "ok"}\n' * 1000)
    study = {"schema": 1, "name": "tour", "width": None, "groups": [{"name": "a", "threads": [2]}]}
    (folder / "campaign.json").write_text(json.dumps({"schema": 1, "plan": {"study": study}}))
    (folder / ".lock").write_text("1")
    (folder / "outside").symlink_to("/etc/hostname")
    return folder


# ---- cite


def test_the_sentence_states_the_largest_effect_and_the_proof() -> None:
    result = synthetic_results.tour()
    largest = max(result["headlines"], key=lambda headline: float(headline["ratio"]["estimate"]))
    sentence = cite.cite(typed(result)).sentence
    assert f"by at most {100 * (largest['ratio']['estimate'] - 1):.0f}\u00a0%" in sentence
    assert f"[{100 * (largest['ratio']['low'] - 1):.0f}, {100 * (largest['ratio']['high'] - 1):.0f}]" in sentence
    assert f"{largest['best']} against {largest['worst']}" in sentence
    assert "interposition verified in 770 of 770 runs" in sentence
    assert "Intel(R) Xeon(R) Processor @ 2.80GHz (2 cores" in sentence and "revision 153d35e0c0ff" in sentence


def test_a_simulated_result_names_the_simulated_machine_and_not_the_host() -> None:
    result = synthetic_results.tour()
    result["machines"] = {
        "sim:xeon-e5405": {"cpu": "two Xeon E5405", "cores": 8, "fingerprint": "f3f01faf10484207", "simulated": True}
    }
    citation = cite.cite(typed(result))
    assert "on the simulated machine xeon-e5405 (two Xeon E5405), " in citation.sentence
    assert "@ 2.80GHz" not in citation.sentence, "the processor of the host decided nothing"
    assert (
        "machine f3f01faf10484207" in citation.bibtex and str(result["machine"]["fingerprint"]) not in citation.bibtex
    )


def test_unproven_runs_are_not_verified_ones() -> None:
    sentence = cite.cite(typed(synthetic_results.troubled())).sentence
    assert "interposition verified in 750 of 760 runs" in sentence and "3 of 77 cells without a result" in sentence


def test_no_effect_is_said() -> None:
    result = synthetic_results.tour()
    for headline in result["headlines"]:
        headline["p_holm"] = 0.5
    assert "no effect of the allocator could be shown" in cite.cite(typed(result)).sentence


def test_bibtex_is_escaped_and_balanced() -> None:
    result = synthetic_results.tour()
    result["title"] = "50 % of {braces_\\ & # $ ^ ~"
    entry = cite.cite(typed(result), "ab" * 32).bibtex
    assert entry.startswith("@misc{loam-tour-2026-11-21,\n") and "year         = {2026}" in entry
    assert r"50 \% of \{braces\_\textbackslash{} \& \# \$ \textasciicircum{} \textasciitilde{}" in entry
    bare = re.sub(r"\\[{}]", "", entry)
    assert bare.count("{") == bare.count("}")
    assert "ab" * 32 in entry and "./loam tour" in entry


def test_cite_command(result: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["cite", str(result), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["sentence"].endswith("runs.") and document["bibtex"].startswith("@misc{")


# ---- pack


def test_the_archive_holds_all_and_only_the_result(result: Path, tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    sums = pack.pack(result, archive)
    assert pack.check(archive) == len(sums)
    with tarfile.open(archive) as opened:
        names = {name.split("/", 1)[1] for name in opened.getnames()}
        assert names == {*sums, "SHA256SUMS"}
        kept = {
            "result.json",
            "campaign.json",
            "journal/local.jsonl",
            "allocators.json",
            "study.toml",
            "report.html",
            "README.md",
        }
        assert set(sums) == kept
        for entry in opened:
            assert (entry.uid, entry.gid, entry.uname, entry.mode) == (0, 0, "", 0o644)
            assert entry.mtime == 1795255933, "the time at which the result was made"
        text = opened.extractfile("loam-tour-20261121T101213Z-5f3a/README.md")
        assert text is not None
        readme = text.read().decode()
    for command in synthetic_results.tour()["commands"]:
        assert command in readme
    assert "git checkout 153d35e0c0ffee" in readme


def test_same_result_same_bytes(result: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack.pack(result, tmp_path / "a.tar.gz")
    (result / "journal" / "local.jsonl").touch()
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    pack.pack(result, tmp_path / "b.tar.gz")
    assert (tmp_path / "a.tar.gz").read_bytes() == (tmp_path / "b.tar.gz").read_bytes()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")
    pack.pack(result, tmp_path / "c.tar.gz")
    with tarfile.open(tmp_path / "c.tar.gz") as opened:
        assert {entry.mtime for entry in opened} == {1000000000}


def test_another_file_is_not_overwritten(result: Path, tmp_path: Path) -> None:
    target = tmp_path / "thesis.tar.gz"
    target.write_text("years of work")
    with pytest.raises(LoamError, match="exists and holds something else"):
        pack.pack(result, target)
    assert target.read_text() == "years of work"
    pack.pack(result, tmp_path / "a.tar.gz")
    pack.pack(result, tmp_path / "a.tar.gz")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz", "results", "thesis.tar.gz"]


def _rewritten(archive: Path, change: Callable[[str, bytes], tuple[str, bytes] | None]) -> Path:
    """A copy of the archive with its files changed, renamed or left out."""
    target = archive.with_name("changed.tar.gz")
    with tarfile.open(archive) as old, tarfile.open(target, "w:gz") as new:
        for entry in old:
            stream = old.extractfile(entry)
            assert stream is not None
            changed = change(entry.name, stream.read())
            if changed is not None:
                entry.name, entry.size = changed[0], len(changed[1])
                new.addfile(entry, io.BytesIO(changed[1]))
    return target


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda n, d: (n, d.replace(b"glibc", b"g1ibc") if n.endswith("result.json") else d), "result.json differs"),
        (lambda n, d: None if n.endswith("local.jsonl") else (n, d), "journal/local.jsonl is missing"),
        (lambda n, d: None if n.endswith("SHA256SUMS") else (n, d), "holds no SHA256SUMS"),
        (lambda n, d: (n.replace("study.toml", "more.toml"), d), "more.toml is not in SHA256SUMS"),
        (lambda n, d: (n.replace("study.toml", "../../x"), d), "which no result has"),
        (lambda n, d: ("/etc/x" if n.endswith("study.toml") else n, d), "which no result has"),
        (lambda n, d: (n, b"nonsense\n" if n.endswith("SHA256SUMS") else d), "not a checksum and a name"),
    ],
)
def test_what_was_changed_is_found(
    result: Path, tmp_path: Path, change: Callable[[str, bytes], tuple[str, bytes] | None], message: str
) -> None:
    pack.pack(result, tmp_path / "a.tar.gz")
    with pytest.raises(LoamError, match=message):
        pack.check(_rewritten(tmp_path / "a.tar.gz", change))


def test_archives_that_are_none(tmp_path: Path, result: Path) -> None:
    pack.pack(result, tmp_path / "a.tar.gz")
    whole = (tmp_path / "a.tar.gz").read_bytes()
    for content in (b"", b"text", whole[: len(whole) // 2], gzip.compress(b"x" * 600)):
        (tmp_path / "bad.tar.gz").write_bytes(content)
        with pytest.raises(LoamError, match="archive"):
            pack.check(tmp_path / "bad.tar.gz")
    with pytest.raises(LoamError, match="no such file"):
        pack.check(tmp_path / "none.tar.gz")


def test_pack_command(result: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    archive = tmp_path / "a.tar.gz"
    assert main.run(["pack", str(result), "--out", str(archive), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["archive"] == str(archive)
    assert main.run(["pack", "--check", str(archive)]) == 0
    assert "all match" in capsys.readouterr().out
    assert main.run(["pack", str(result), "--check", str(archive)]) == 2
    assert main.run(["pack", str(tmp_path)]) == 2
