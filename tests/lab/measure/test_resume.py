"""Resume: nothing measured is lost or repeated, whenever the lab is killed; and never onto other conditions."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from campaigns import STM, FakeInstruments, forked, measure, runner, study

import loam_lab
from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import plan as plans
from loam_lab.campaign.measure.given_up import TIMEOUTS_MAX
from loam_lab.judging.result import summarise
from loam_lab.model.cell import canonical
from loam_lab.model.store import journal
from loam_lab.model.study import Study


def test_resume_skips_what_is_finished(tmp_path: Path) -> None:
    log = tmp_path / "log"
    instruments = FakeInstruments(variables={"FAKE_LOG": str(log)})
    measure(study(), tmp_path / "o", instruments)
    file = tmp_path / "o" / "journal" / "local.jsonl"
    kept = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(kept[:5]))
    ended, _ = measure(study(), tmp_path / "o", instruments, resume=True)
    assert (ended.measured, ended.done) == (len(kept) - 5, len(kept))
    assert len(log.read_text().splitlines()) == 2 * len(kept) - 5
    assert measure(study(), tmp_path / "o", instruments, resume=True)[0].measured == 0


def test_what_was_given_up_stays_given_up(tmp_path: Path) -> None:
    made = study(allocators=["plain"], parameters={"mode": "hang"}, timeout_s=0.3)
    ended = runner(made, tmp_path).run()
    assert ended.measured == TIMEOUTS_MAX < ended.total
    assert runner(made, tmp_path, resume=True).run().measured == 0


def test_the_time_goes_on_after_whatever_ended_last(tmp_path: Path) -> None:
    """Lines of several writers are not in the order of time: the last one that is read may have ended long before."""
    runner(study(), tmp_path).run()
    file = tmp_path / "journal" / "local.jsonl"
    first, second, *_ = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(canonical(line) + "\n" for line in ({**first, "t_s": 1000.0}, second)))
    runner(study(), tmp_path, resume=True).run()
    assert all(line["t_s"] > 1000 for line in journal.read(tmp_path)[2:])


def lines_in(folder: Path) -> int:
    """Newlines in the journal, torn or not."""
    file = folder / "journal" / "local.jsonl"
    return file.read_bytes().count(b"\n") if file.exists() else 0


@pytest.mark.parametrize(
    ("wanted_kills", "disturbances"),
    [
        pytest.param(50, False, marks=pytest.mark.slow),
        pytest.param(200, False, marks=pytest.mark.exhaustive),
        pytest.param(200, True, marks=pytest.mark.exhaustive),
    ],
)
def test_killed_at_random_points_nothing_is_lost_or_doubled(
    tmp_path: Path, wanted_kills: int, disturbances: bool
) -> None:
    """Each kill hits a campaign that goes on where the last one was stopped; a run in flight may be lost, no other.

    With disturbances, blocks are run again, and which ones must follow from the journal alone
    """
    log, out = tmp_path / "log", tmp_path / "o"
    made = study(
        parameters={"structure": ["list", "tree"], "mapping": ["table", "shadow"]},
        blocks=wanted_kills * 6 // 5,
        blame=True,
    )
    instruments = FakeInstruments(
        variables={"FAKE_LOG": str(log)}, disturbed=lambda number: disturbances and number % 7 == 3
    )
    chance = random.Random(2024)
    plans.make(made)  # what the executable says is asked once, here, and not in every child
    survived: list[str] = []
    kills = 0
    while kills < wanted_kills:
        child = forked(lambda: runner(made, out, instruments, resume=(out / "campaign.json").exists()).run())
        # After so many further runs, or (none) somewhere in the start; and then at any moment of a run.
        wanted, patience = chance.randrange(10), time.monotonic() + 60
        while wanted and lines_in(out) < len(survived) + wanted and time.monotonic() < patience:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.015 if wanted else 0.15))
        os.kill(child, signal.SIGKILL)
        _, state = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(state) == -signal.SIGKILL, "the campaign must be long enough for every kill"
        kills += 1
        ids = [line["id"] for line in journal.read(out)] if out.exists() else []
        assert ids[: len(survived)] == survived, f"a finished run was lost at kill {kills}"
        survived = ids
    ended = runner(made, out, instruments, resume=True).run()
    lines = journal.read(out)
    assert ended.done == ended.total == len(lines) == len({line["id"] for line in lines})
    assert all(count == 1 for count in Counter(line["id"] for line in lines).values())
    assert (ended.repeated > 0) == disturbances
    attempts = Counter((line["cell"], line["copy"], line["block"]) for line in lines if line["purpose"] == "timing")
    assert len(attempts) == ended.total - ended.repeated - sum(line["purpose"] == "blame" for line in lines)
    started = len(log.read_text().splitlines())
    assert started - len(lines) <= wanted_kills, "more runs were repeated than were in flight"
    assert len(survived) > 2 * wanted_kills, "the kills came too early to test anything"
    result = summarise.write(out, elapsed_s=0).as_json()
    assert {cell["state"] for cell in result["cells"]} == {"ok"}


def test_a_kill_between_folder_and_manifest_can_be_started_again(tmp_path: Path) -> None:
    with journal.lock(tmp_path):
        pass
    ended, _ = measure(study(), tmp_path)
    assert ended.done == ended.total


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            {"instruments": FakeInstruments(cores=4)},
            "cores of machine host was 2 when the campaign started and is 4 now",
        ),
        ({"instruments": FakeInstruments(sha256="1" * 64)}, "sha256 of plain was 0000"),
        ({"study": study(blocks=5)}, r"plan\.study\.blocks \(5 now, 4 then\)"),
        ({"study": study(seed=2)}, r"plan\.study\.seed"),
        ({"study": study(allocators=["plain", "slow"])}, r"plan\.study\.allocators\[1\] \(slow now, fast then\)"),
    ],
)
def test_other_conditions_are_refused(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    measure(study(), tmp_path)
    before = (tmp_path / "campaign.json").read_bytes()
    with pytest.raises(LoamError, match=message):
        measure(changed.get("study", study()), tmp_path, changed.get("instruments"), resume=True)
    assert (tmp_path / "campaign.json").read_bytes() == before


def test_groups_that_differ_are_told_by_name(tmp_path: Path) -> None:
    """Not by all that the study's file says of them."""
    one = study().model_dump(by_alias=True)
    two = Study.model_validate({**one, "groups": [*one["groups"], {**one["groups"][0], "name": "other"}]})
    measure(two, tmp_path)
    name = one["groups"][0]["name"]
    with pytest.raises(LoamError, match=rf"plan\.study\.groups \({name} now, {name}, other then\) differs"):
        measure(study(), tmp_path, resume=True)


def test_a_long_value_that_differs_is_cut(tmp_path: Path) -> None:
    measure(study(question="w" * 400), tmp_path)
    with pytest.raises(LoamError, match=r"plan\.study\.question \(q{197}\.\.\. now, w{197}\.\.\. then\) differs"):
        measure(study(question="q" * 400), tmp_path, resume=True)


def test_another_build_is_refused(tmp_path: Path) -> None:
    peer = tmp_path / "peer"
    peer.write_bytes(Path(STM).read_bytes())
    peer.chmod(0o755)
    measure(study(sync=[str(peer)]), tmp_path / "o")
    peer.write_bytes(Path(STM).read_bytes() + b"# rebuilt\n")
    with pytest.raises(LoamError, match="build_id of peer was sha256:"):
        measure(study(sync=[str(peer)]), tmp_path / "o", resume=True)


def test_another_version_of_the_lab_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure(study(), tmp_path)
    monkeypatch.setattr(loam_lab, "__version__", "9.9")
    with pytest.raises(LoamError, match=r"the lab's version was .* and is 9\.9 now"):
        measure(study(), tmp_path, resume=True)


def test_nothing_to_resume_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from loam_lab.model.store import folder

    monkeypatch.chdir(tmp_path)
    with pytest.raises(LoamError, match="no campaign of tour was started in this folder"):
        folder.started("tour", None)
    with pytest.raises(LoamError, match="no campaign was started in it"):
        folder.started("tour", tmp_path)
