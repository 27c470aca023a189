"""The journal: what survives a torn write, a second writer, a full disk, another version."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.model.schema import SCHEMA
from loam_lab.model.store import folder as folders
from loam_lab.model.store import journal


def line(number: int, **more: object) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "id": f"id{number}",
        "order": number,
        "state": "ok",
        "records": [{"kind": "begin"}],
        **more,
    }


def written(folder: Path) -> Path:
    return folder / "journal" / "local.jsonl"


def test_lines_are_read_back(tmp_path: Path) -> None:
    with journal.Journal(tmp_path) as writer:
        for number in range(3):
            writer.append(line(number))
    assert [record["id"] for record in journal.read(tmp_path)] == ["id0", "id1", "id2"]
    assert written(tmp_path).read_bytes().count(b"\n") == 3


@pytest.mark.parametrize("cut", range(1, 40))
def test_a_torn_last_line_is_skipped_and_mended(tmp_path: Path, cut: int) -> None:
    with journal.Journal(tmp_path) as writer:
        writer.append(line(0))
        writer.append(line(1, detail="é" * 20))
    whole = written(tmp_path).read_bytes()
    written(tmp_path).write_bytes(whole[:-cut])
    kept = 2 if cut == 1 else 1  # only the newline is missing: the line is whole
    assert len(journal.read(tmp_path)) == kept
    with journal.Journal(tmp_path) as writer:
        writer.append(line(2))
    assert [record["id"] for record in journal.read(tmp_path)] == ["id0", *["id1"][: kept - 1], "id2"]
    assert written(tmp_path).read_bytes().endswith(b"\n")


def test_a_torn_first_line_leaves_an_empty_journal(tmp_path: Path) -> None:
    written(tmp_path).parent.mkdir()
    written(tmp_path).write_bytes(b'{"schema":1,"id"')
    with journal.Journal(tmp_path):
        pass
    assert written(tmp_path).read_bytes() == b""


def test_a_long_torn_line_is_found_beyond_one_read(tmp_path: Path) -> None:
    with journal.Journal(tmp_path) as writer:
        writer.append(line(0))
        writer.append(line(1, detail="x" * 300_000))
    whole = written(tmp_path).read_bytes()
    written(tmp_path).write_bytes(whole[:-10])
    with journal.Journal(tmp_path):
        pass
    assert [record["id"] for record in journal.read(tmp_path)] == ["id0"]


def test_the_lines_of_several_writers_are_read_together(tmp_path: Path) -> None:
    folder = tmp_path / "it's [a] *result* é"
    folder.mkdir()
    for writer_name, numbers in (("b", (1, 2)), ("a", (0,))):
        with journal.Journal(folder, writer_name) as writer:
            for number in numbers:
                writer.append(line(number, detail=writer_name))
    assert [(record["id"], record["detail"]) for record in journal.read(folder)] == [
        ("id0", "a"),
        ("id1", "b"),
        ("id2", "b"),
    ]


def test_another_schema_is_refused(tmp_path: Path) -> None:
    with journal.Journal(tmp_path) as writer:
        writer.append({**line(0), "schema": 99})
    with pytest.raises(LoamError, match=f"has schema 99, this lab reads {SCHEMA}"):
        journal.read(tmp_path)


def test_two_holders_of_a_folder_are_told_apart(tmp_path: Path) -> None:
    refused = pytest.raises(LoamError, match=r"another campaign is running in it \(process \d+\)")
    with journal.lock(tmp_path), refused, journal.lock(tmp_path):
        pytest.fail("both hold the lock")
    with journal.lock(tmp_path):
        pass


def test_a_holder_is_named_whoever_held_it_before(tmp_path: Path) -> None:
    (tmp_path / journal.LOCK).write_text("123456789012\n")
    with journal.lock(tmp_path):
        assert (tmp_path / journal.LOCK).read_text() == f"{os.getpid()}\n"


def test_a_folder_that_a_killed_campaign_still_holds_for_a_moment_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder = os.open(tmp_path / journal.LOCK, os.O_RDWR | os.O_CREAT)
    fcntl.flock(holder, fcntl.LOCK_EX)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            os.close(holder)

    monkeypatch.setattr(journal.time, "sleep", wait)
    with journal.lock(tmp_path):
        assert len(waits) == 2


def test_a_full_disk_says_how_to_go_on(tmp_path: Path) -> None:
    written(tmp_path).parent.mkdir()
    written(tmp_path).symlink_to("/dev/full")
    with journal.Journal(tmp_path) as writer, pytest.raises(LoamError, match=r"No space left.*--resume"):
        writer.append(line(0))


def test_a_line_that_the_kernel_takes_in_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    with journal.Journal(tmp_path) as writer:
        monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:7]))
        for number in range(3):
            writer.append(line(number, detail="é" * number))
        monkeypatch.undo()
    assert [record["detail"] for record in journal.read(tmp_path)] == ["", "é", "éé"]


def test_an_unusable_folder_is_named() -> None:
    for place in ("/proc/loam", "/dev/null/results"):
        with pytest.raises(LoamError, match=r"cannot be written: .*--out"):
            folders.new("tour", Path(place))


def test_results_of_another_version_and_damaged_ones_are_refused(tmp_path: Path) -> None:
    with pytest.raises(LoamError, match=r"holds no result\.json"):
        folders.read_result(tmp_path)
    with pytest.raises(LoamError, match="cannot be read"):
        folders.read_manifest(tmp_path)
    for text, expected in (("{", "is damaged"), ("[]", "not a JSON object"), ('{"schema": 7}', "has schema 7")):
        (tmp_path / "result.json").write_text(text)
        with pytest.raises(LoamError, match=expected):
            folders.read_result(tmp_path)
        (tmp_path / "campaign.json").write_text(text)
        with pytest.raises(LoamError, match=expected):
            folders.read_manifest(tmp_path)


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    journal.write_whole(file, "one")
    journal.write_whole(file, "two")
    assert file.read_text() == "two"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]


def test_a_disk_without_a_free_byte_is_told_when_the_folder_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "pwrite", refuse)
    with pytest.raises(LoamError, match=r"No space left on device.*free some space"), journal.lock(tmp_path):
        pass
