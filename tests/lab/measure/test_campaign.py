"""Campaigns end to end with a made-up workload: whatever one cell does, the rest is measured and nothing is lost."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from campaigns import STM, FakeInstruments, asking, cells, forked, measure, runner, study

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import execution as execution_module
from loam_lab.campaign.measure.given_up import TIMEOUTS_MAX
from loam_lab.campaign.measure.progress import Remaining, duration
from loam_lab.commands.run import commands
from loam_lab.model.store import journal


def test_a_campaign_measures_everything_it_planned(tmp_path: Path) -> None:
    log = tmp_path / "log"
    ended, result = measure(study(blame=True), tmp_path / "out", FakeInstruments(variables={"FAKE_LOG": str(log)}))
    assert (ended.done, ended.total, ended.skipped, ended.interrupted) == (14, 14, 0, False)
    assert len(log.read_text().splitlines()) == 14
    assert {cell["state"] for cell in result["cells"]} == {"ok"}
    assert result["failures"] == []
    lines = journal.read(tmp_path / "out")
    assert [line["order"] for line in lines] == sorted(line["order"] for line in lines)
    assert all(line["wall_s"] > 0 and line["proof"]["status"] == "proven" for line in lines)


def test_the_identity_holds_whatever_can_change_the_numbers(tmp_path: Path) -> None:
    measure(study(parameters={"structure": "tree"}), tmp_path)
    identity = journal.read(tmp_path)[0]["identity"]
    assert set(identity) == {
        "schema", "workload", "parameters", "warmup_ms", "allocator", "sync", "threads", "machine", "preset", "purpose",
        "seed", "block", "copy", "attempt",
    }  # fmt: skip
    assert identity["parameters"] == {
        "structure": "tree", "mapping": "table", "shift": 5, "mode": "ok", "spread": 10, "input": "",
        "duration_ms": 1,
    }  # fmt: skip
    assert identity["machine"] == {"name": "host", "cpu": "made up", "cores": 2}
    assert set(identity["allocator"]) == {"name", "settings", "sha256"}
    assert identity["sync"]["build_id"].startswith("sha256:")


@pytest.mark.parametrize(
    ("mode", "state", "detail"),
    [
        ("crash", "signal", r"ended by SIGSEGV"),
        ("exit", "exit", r"ended with status 7: gave up"),
        ("wrong", "verification", r"size 3 is not 4"),
        ("truncated", "exit", r"truncated: no end record"),
        ("garbage", "exit", r"record 2 is not JSON"),
        ("other", "exit", r"the records say threads=99, but 1 was requested"),
    ],
)
def test_a_cell_that_goes_wrong_is_recorded_and_the_rest_goes_on(
    tmp_path: Path, mode: str, state: str, detail: str
) -> None:
    instruments = FakeInstruments(variables={"FAKE_ONLY": "fast"})
    made = study(parameters={"mode": mode}, allocators=["plain", "fast", "slow"], blocks=6)
    _, result = measure(made, tmp_path, instruments)
    (failure,) = result["failures"]
    assert (failure["state"], failure["count"], failure["cell"]["allocator"]) == (state, 6, "fast")
    assert re.search(detail, failure["detail"])
    (fast,), (slow,) = cells(result, allocator="fast"), cells(result, allocator="slow")
    assert (fast["state"], fast["verdict"], fast["failed"], fast["ratio_to_baseline"]) == ("failed", "failed", 6, None)
    assert "6 of 6 runs failed" in fast["warnings"][0]
    assert (slow["state"], slow["runs"], slow["verdict"]) == ("ok", 6, "worse")


def test_a_hanging_cell_is_ended_and_given_up(tmp_path: Path) -> None:
    instruments = FakeInstruments(variables={"FAKE_ONLY": "fast"})
    made = study(parameters={"mode": "hang"}, blocks=6, timeout_s=0.3)
    began = time.monotonic()
    ended, result = measure(made, tmp_path, instruments)
    assert time.monotonic() - began < 50, "it would sleep for 60 seconds"
    assert ended.skipped == 4
    (failure,) = result["failures"]
    assert (failure["state"], failure["count"]) == ("timeout", TIMEOUTS_MAX)
    assert cells(result, allocator="plain", copy=0)[0]["runs"] == 6


def test_an_unproven_allocator_is_reported_not_measured(tmp_path: Path) -> None:
    instruments = FakeInstruments(unproven=frozenset({"fast"}))
    made = study(parameters={"structure": ["list", "tree"]}, allocators=["plain", "fast", "slow"], blocks=6)
    ended, result = measure(made, tmp_path, instruments)
    assert ended.skipped == 11, "one unproven run speaks for all of the same allocator and executable"
    assert {cell["verdict"] for cell in cells(result, allocator="fast")} == {"unproven"}
    assert all(cell["ratio_to_baseline"] is None for cell in cells(result, allocator="fast"))
    assert {cell["verdict"] for cell in cells(result, allocator="slow")} == {"worse"}
    proofs = {allocator["name"]: (allocator["proof"], allocator["reasons"]) for allocator in result["allocators"]}
    assert proofs == {"plain": ("proven", []), "fast": ("unproven", ["made up"]), "slow": ("proven", [])}
    assert all(headline["best"] != "fast" for headline in result["headlines"])


def test_an_executable_that_vanishes_is_recorded(tmp_path: Path) -> None:
    peer = tmp_path / "peer"
    peer.write_bytes(Path(STM).read_bytes())
    peer.chmod(0o755)
    made = runner(study(sync=[str(peer)]), tmp_path / "out")
    peer.unlink()
    ended = made.run()
    assert (ended.done, ended.skipped) == (0, 12)
    assert ended.changed[0].startswith(f"{peer} is gone"), "said once; test_subjects.py has what happens in the middle"


def test_blocks_that_do_not_fit_the_time_budget_are_left_out_whole(tmp_path: Path) -> None:
    made = study(parameters={"structure": ["list", "tree"]}, blocks=200, budget_s=1.0)
    ended, result = measure(made, tmp_path)
    assert 6 * 6 <= ended.done < ended.total
    assert len({cell["runs"] for cell in result["cells"]}) == 1
    assert any("planned runs are in the journal" in warning for warning in result["warnings"])


def test_a_used_folder_is_refused(tmp_path: Path) -> None:
    measure(study(), tmp_path / "a")
    with pytest.raises(LoamError, match="holds a campaign already"):
        measure(study(), tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.tex").touch()
    with pytest.raises(LoamError, match=r"is not empty: thesis\.tex"):
        measure(study(), tmp_path / "b")


def test_a_start_that_was_killed_before_its_manifest_stood_does_not_use_up_a_folder(tmp_path: Path) -> None:
    for name in (".lock", ".campaign.json.4711"):
        (tmp_path / name).write_text('{"schema": ')
    ended, _ = measure(study(), tmp_path)
    assert ended.done == ended.total


def test_two_campaigns_in_one_folder_are_refused(tmp_path: Path) -> None:
    child = forked(runner(study(blocks=1000), tmp_path).run)
    try:
        while not (tmp_path / "journal").exists():
            time.sleep(0.01)
        for resume in (False, True):
            with pytest.raises(LoamError, match="another campaign is running in it"):
                measure(study(blocks=1000), tmp_path, resume=resume)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_keeps_what_was_measured_and_says_how_to_go_on(
    tmp_path: Path, number: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    made = study(blocks=1000)
    request = asking(out=tmp_path / "o", report=False)
    child = forked(lambda: commands.perform(made, request, command="./loam tour", instruments=FakeInstruments()))
    while len(journal.read(tmp_path / "o")) < 20:
        time.sleep(0.01)
    os.kill(child, number)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 130
    stderr = capfd.readouterr().err
    kept = len(journal.read(tmp_path / "o"))
    assert (
        f"interrupted: {kept} of 3000 runs are kept; continue with: ./loam tour --resume --out {tmp_path / 'o'}"
        in stderr
    )
    assert json.loads((tmp_path / "o" / "result.json").read_text())["cells"][0]["runs"] >= 5


def test_json_on_standard_output_and_progress_beside_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = asking(out=tmp_path / "o", as_json=True, report=False)
    status = commands.perform(study(blocks=6), request, command="./loam run x", instruments=FakeInstruments())
    out, err = capsys.readouterr()
    assert status == 0
    assert json.loads(out) == json.loads((tmp_path / "o" / "result.json").read_text())
    assert "18 runs" in err


def test_the_exit_status_tells_of_failures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    request = asking(out=tmp_path / "o", report=False)
    made = study(parameters={"mode": "exit"})
    assert commands.perform(made, request, command="./loam run x", instruments=FakeInstruments()) == 1
    assert "ended with status 7" in capsys.readouterr().out


def test_latest_points_to_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        commands.perform(study(), asking(report=False), command="./loam run x", instruments=FakeInstruments())
    folders = sorted((tmp_path / "results").glob("tiny-*"))
    assert len(folders) == 2
    assert all(re.fullmatch(r"tiny-\d{8}T\d{6}Z-[0-9a-f]{4}", folder.name) for folder in folders)
    newest = max(folders, key=lambda folder: (folder / "campaign.json").stat().st_mtime_ns)
    assert (tmp_path / "results" / "latest").resolve() == newest


def test_environment_of_a_run_is_small_and_padded_alike_within_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[dict[str, str]] = []
    real = execution_module.execute

    def spy(argv: list[str], environment: dict[str, str], **options: Any) -> Any:
        seen.append(environment)
        return real(argv, environment, **options)

    monkeypatch.setattr(execution_module, "execute", spy)
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    monkeypatch.setenv("LD_PRELOAD", "")
    measure(study(), tmp_path)
    assert all(
        set(variables)
        <= {"PATH", "HOME", "LD_LIBRARY_PATH", "LANG", "FAKE_ALLOCATOR", "LOAM_PADDING", "LOAM_STACK_OFFSET"}
        for variables in seen
    )
    paddings = [len(variables["LOAM_PADDING"]) for variables in seen]
    assert len(set(paddings)) == 4
    assert all(len(set(paddings[3 * block : 3 * block + 3])) == 1 for block in range(4))


def test_remaining_time_follows_what_was_measured() -> None:
    remaining = Remaining([("a", 1.0)] * 4 + [("b", 2.0)] * 4)
    assert remaining.seconds() == pytest.approx(12)
    remaining.done("a", 3.0)
    assert remaining.seconds() == pytest.approx(3 * 3 + 4 * 2 * 3)  # b has not been seen: its guess is scaled alike
    remaining.done("b", 4.0)
    assert remaining.seconds() == pytest.approx(3 * 3 + 3 * 4)
    remaining.done("b", None)
    assert remaining.seconds() == pytest.approx(3 * 3 + 2 * 4)
    assert [duration(s) for s in (0.4, 75, 7300)] == ["0 s", "1 min 15 s", "2 h 1 min"]
