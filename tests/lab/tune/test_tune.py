"""tune: every change is written down first, and restore undoes exactly what is still ours, whatever happened between."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import kernel_files
import pytest
from kernel_files import BAD, BOOT, DAMON, GOVERNOR, THP, Kernel, Killed, kernel

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.base.tree import NEEDS_ROOT, Tree
from loam_lab.cli import main
from loam_lab.commands.doctor import tuned
from loam_lab.commands.doctor.finding import View
from loam_lab.setup.tune import commands, journal, settings, steps


@pytest.fixture
def machine(tmp_path: Path) -> Kernel:
    return kernel(tmp_path / "root")


@pytest.fixture
def notes(tmp_path: Path) -> journal.Journal:
    return journal.Journal(tmp_path / "state" / "tune.jsonl")


def apply(tree: Tree, notes: journal.Journal, *only: str) -> list[steps.Step]:
    with notes.held():
        return list(steps.apply(tree, notes, settings.changes(tree, only)))


def restore(tree: Tree, notes: journal.Journal) -> list[steps.Step]:
    with notes.held():
        return list(steps.restore(tree, notes))


def words(outcomes: list[steps.Step]) -> dict[str, str]:
    return {outcome.path: outcome.how for outcome in outcomes}


def test_what_would_be_changed_is_what_measures_worse(machine: Kernel) -> None:
    by_path = {change.path: (change.before, change.after) for change in settings.changes(machine)}
    assert by_path == {
        THP: ("always", "madvise"), "/sys/kernel/mm/transparent_hugepage/defrag": ("always", "madvise"),
        GOVERNOR.format(0): ("powersave", "performance"), GOVERNOR.format(1): ("schedutil", "performance"),
        "/sys/devices/system/cpu/intel_pstate/no_turbo": ("0", "1"), "/proc/sys/kernel/numa_balancing": ("1", "0"),
        f"{DAMON}/state": ("on", "off"), "/proc/sys/vm/swappiness": ("60", "1"),
        "/proc/sys/kernel/perf_event_paranoid": ("4", "2"), "/proc/sys/kernel/nmi_watchdog": ("1", "0"),
        "/proc/sys/kernel/sched_autogroup_enabled": ("1", "0"), "/proc/sys/kernel/randomize_va_space": ("0", "2"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text"),
    [(THP, "always madvise [never]"), (THP, "always [madvise] never"), ("/proc/sys/kernel/perf_event_paranoid", "-1"),
     ("/proc/sys/kernel/randomize_va_space", "2"), ("/proc/swaps", "Filename Type Size Used Priority")],
)  # fmt: skip
def test_what_somebody_chose_or_does_not_matter_is_left_alone(machine: Kernel, path: str, text: str) -> None:
    machine.put(path, text)
    about = "/proc/sys/vm/swappiness" if path == "/proc/swaps" else path
    assert about not in {change.path for change in settings.changes(machine)}


def test_restore_brings_every_file_back(machine: Kernel, notes: journal.Journal) -> None:
    before = machine.values()
    applied = apply(machine, notes)
    assert {outcome.how for outcome in applied} == {"set"} and list(settings.changes(machine)) == []
    assert machine.read(THP) == "always [madvise] never"
    assert set(words(restore(machine, notes)).values()) == {"restored"}
    assert machine.values() == before
    assert restore(machine, notes) == []


def test_a_value_is_on_disk_before_it_is_changed(tmp_path: Path, notes: journal.Journal) -> None:
    def noted(name: str, value: str) -> None:
        last = json.loads(notes.file.read_text().splitlines()[-1])
        assert (last["event"], last["path"], last["after"]) == ("set", name, value)
        assert last["before"] == machine.value(name)

    machine = kernel(tmp_path / "root", before_write=noted)
    assert len(apply(machine, notes)) == 12


def test_only_what_is_still_ours_is_put_back(machine: Kernel, notes: journal.Journal) -> None:
    apply(machine, notes)
    machine.put(THP, "always madvise [never]")
    machine.put(GOVERNOR.format(0), "powersave")
    machine.path(GOVERNOR.format(1)).unlink()
    by_path = {outcome.path: outcome for outcome in restore(machine, notes)}
    assert by_path[THP].how == "changed meanwhile" and "never" in by_path[THP].detail
    assert by_path[GOVERNOR.format(0)].how == "already back" and by_path[GOVERNOR.format(1)].how == "gone"
    assert machine.read(THP) == "always madvise [never]"
    assert sum(outcome.how == "restored" for outcome in by_path.values()) == 9


def test_after_a_reboot_nothing_is_written(tmp_path: Path, notes: journal.Journal) -> None:
    machine = kernel(tmp_path / "root")
    apply(machine, notes)
    for path, text in BAD.items():
        machine.put(path, text)  # a reboot
    machine.put(BOOT, "second-boot")
    machine.put("/proc/sys/kernel/nmi_watchdog", "0")  # now by the system's own configuration
    before = machine.values()
    by_path = words(restore(machine, notes))
    assert machine.values() == before
    assert by_path.pop("/proc/sys/kernel/nmi_watchdog") == "changed meanwhile"
    assert set(by_path.values()) == {"undone by a reboot"}


def test_applied_twice_the_first_values_come_back(machine: Kernel, notes: journal.Journal) -> None:
    before = machine.values()
    apply(machine, notes, "thp")
    apply(machine, notes)
    assert apply(machine, notes) == []
    restore(machine, notes)
    assert machine.values() == before


def test_applied_over_somebody_elses_change_it_is_theirs_that_comes_back(
    machine: Kernel, notes: journal.Journal
) -> None:
    apply(machine, notes, "governor")
    machine.put(GOVERNOR.format(0), "ondemand")
    apply(machine, notes, "governor")
    restore(machine, notes)
    assert machine.read(GOVERNOR.format(0)) == "ondemand" and machine.read(GOVERNOR.format(1)) == "schedutil"


FOUR = {name: BAD[name] for name in (BOOT, THP, GOVERNOR.format(0), GOVERNOR.format(1), f"{DAMON}/state")}


class Countdown:
    """Kills at the n-th step, a write of a setting or of the journal; the journal's may be torn."""

    def __init__(self, steps_left: int) -> None:
        self.left = steps_left

    def step(self, *_: object) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed


class TornJournal(journal.Journal):
    """A journal whose writer is killed before, within or after a line."""

    def __init__(self, file: Path, clock: Countdown, torn: int) -> None:
        super().__init__(file)
        self.clock, self.torn = clock, torn

    def append(self, **event: str) -> None:
        try:
            self.clock.step()
        except Killed:
            self._stream.write(json.dumps({"schema": 1, **event}).encode()[: self.torn])
            self._stream.flush()
            raise
        super().append(**event)
        self.clock.step()


@pytest.mark.parametrize("torn", [0, 1, 40])
@pytest.mark.parametrize("during", ["apply", "restore", "both"])
def test_killed_at_any_step_restore_still_undoes_everything(tmp_path: Path, during: str, torn: int) -> None:
    for kill_at in range(200):
        root, file = tmp_path / str(kill_at), tmp_path / f"{kill_at}.jsonl"
        clock = Countdown(kill_at)
        killable = kernel(root, FOUR, before_write=clock.step)
        calm, notes = Kernel(root), journal.Journal(file)
        before = calm.values()
        torn_notes = TornJournal(file, clock, torn)
        killed = False
        if during == "restore":
            apply(calm, notes)
        for work in {"apply": (apply,), "restore": (restore,), "both": (apply, restore)}[during]:
            try:
                work(killable, torn_notes)
            except Killed:
                killed = True
                break
        if during == "both" and killed:
            apply(calm, notes)  # the user tries again
        restore(calm, notes)
        assert calm.values() == before, f"killed at step {kill_at}"
        assert notes.open_entries() == []
        if not killed:
            assert kill_at >= 2 * 4
            return
    raise AssertionError("it never came to its end")


def test_a_refused_value_is_reported_and_is_not_ours(tmp_path: Path, notes: journal.Journal) -> None:
    machine = kernel(tmp_path / "root", refuses={THP: errno.EINVAL})
    by_path = {outcome.path: outcome for outcome in apply(machine, notes)}
    assert by_path[THP].how == "failed" and by_path[THP].detail == "Invalid argument"
    assert THP not in {entry.path for entry in notes.open_entries()} and len(notes.open_entries()) == 11


def test_what_cannot_be_put_back_stays_in_the_journal(tmp_path: Path, notes: journal.Journal) -> None:
    machine = kernel(tmp_path / "root")
    apply(machine, notes)
    stubborn = Kernel(machine.root, refuses={THP: errno.EIO})
    assert words(restore(stubborn, notes))[THP] == "failed"
    assert [entry.path for entry in notes.open_entries()] == [THP]
    assert words(restore(machine, notes)) == {THP: "restored"}


def test_two_at_once_are_refused(machine: Kernel, notes: journal.Journal) -> None:
    with notes.held(), pytest.raises(LoamError, match="another loam tune is running"):
        apply(machine, journal.Journal(notes.file))


def test_a_damaged_journal_is_not_guessed_at(machine: Kernel, notes: journal.Journal) -> None:
    apply(machine, notes)
    lines = notes.file.read_text().splitlines()
    notes.file.write_text("\n".join([lines[0], "{", *lines[2:], ""]))
    with pytest.raises(LoamError, match=r"tune\.jsonl:2: cannot be understood"):
        restore(machine, notes)


def test_without_a_place_for_the_journal_nothing_is_changed(machine: Kernel, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    before = machine.values()
    with pytest.raises(LoamError, match="nothing was changed"):
        apply(machine, journal.Journal(tmp_path / "file" / "tune.jsonl"))
    assert machine.values() == before


def test_doctor_knows_what_is_changed(machine: Kernel, notes: journal.Journal) -> None:
    shown = View(tree=machine)
    assert list(tuned.of(shown, notes)) == []
    apply(machine, notes, "thp", "turbo")
    (finding,) = tuned.of(shown, notes)
    assert finding.fact.startswith("2 files changed by loam tune since 20") and finding.fact.endswith(": thp, turbo")
    restore(machine, notes)
    assert list(tuned.of(shown, notes)) == []


# ---- the command


class Locked(Kernel):
    reason = NEEDS_ROOT

    def locked(self, name: str) -> str:
        return self.reason


class ReadOnly(Locked):
    reason = "its file system is mounted read-only, as containers have it"


def run(mode: str, tree: Tree, notes: journal.Journal, *only: str, as_json: bool = False) -> int:
    return commands.tune(mode, only, as_json=as_json, tree=tree, journal=notes)


def test_dry_run_shows_and_changes_nothing(
    machine: Kernel, notes: journal.Journal, capsys: pytest.CaptureFixture[str]
) -> None:
    before = machine.values()
    assert run("dry-run", machine, notes) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in settings.names()) and "everything runs" in text
    assert machine.values() == before and not notes.file.exists()


def test_without_root_the_lines_to_type_are_printed(
    machine: Kernel, notes: journal.Journal, capsys: pytest.CaptureFixture[str]
) -> None:
    before = machine.values()
    with pytest.raises(LoamError, match="needs root; nothing was changed"):
        run("apply", Locked(machine.root), notes, "thp")
    assert f"echo madvise > {THP}" in capsys.readouterr().out
    assert machine.values() == before


def test_where_files_are_read_only_it_refuses_with_the_reason(machine: Kernel, notes: journal.Journal) -> None:
    with pytest.raises(LoamError, match="thp: cannot be written: its file system is mounted read-only"):
        run("apply", ReadOnly(machine.root), notes, "thp")
    assert not notes.file.exists()


def test_restore_without_root_says_so(machine: Kernel, notes: journal.Journal) -> None:
    apply(machine, notes)
    with pytest.raises(LoamError, match="nothing was restored"):
        run("restore", Locked(machine.root), notes)
    assert len(notes.open_entries()) == 12


def test_apply_and_restore_print_what_they_did(
    machine: Kernel, notes: journal.Journal, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("apply", machine, notes, "thp", "damon") == 0
    text = capsys.readouterr().out
    assert "always -> madvise" in text and "on -> off" in text and "--restore" in text
    assert run("dry-run", machine, notes, "thp") == 0
    assert "thp: always -> madvise: set by an earlier --apply" in capsys.readouterr().out
    assert run("restore", machine, notes, as_json=True) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert {change["how"] for change in document["changes"]} == {"restored"} and len(document["changes"]) == 2
    assert run("restore", machine, notes) == 0
    assert "nothing to restore" in capsys.readouterr().out


def test_a_failure_is_the_status(tmp_path: Path, notes: journal.Journal) -> None:
    assert run("apply", kernel(tmp_path / "root", refuses={THP: errno.EINVAL}), notes) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--apply", "--restore"], "--apply --restore: only one of these at a time"),
        (["--only", "tph"], "--only=tph: not the name of a setting of tune (did you mean thp?)"),
        (["--restore", "--only", "thp"], "--only=thp: restore puts back everything (leave it out)"),
    ],
)
def test_a_wrong_line_is_refused(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["tune", *arguments]) == 2
    assert capsys.readouterr().err == f"error: {message}\n"


def test_the_state_lies_where_the_user_wants_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert journal.default().file == tmp_path / "loam" / "tune.jsonl"
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert journal.default().file == tmp_path / ".local/state/loam/tune.jsonl"


def test_a_tree_reads_and_writes_as_the_kernel_wants_it(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    kernel_files.kernel(tmp_path, {"/sys/a": "x [y] z", "/sys/b": " 12 extra", "/sys/cpu10/c": "", "/sys/cpu2/c": ""})
    assert (tree.value("/sys/a"), tree.number("/sys/b"), tree.number("/sys/a"), tree.read("/no")) == ("y", 12, None, "")
    assert tree.glob("/sys/cpu*/c") == ["/sys/cpu2/c", "/sys/cpu10/c"]
    tree.write("/sys/b", "3")
    assert tree.read("/sys/b") == "3"
    with pytest.raises(FileNotFoundError):
        tree.write("/sys/new", "1")
    assert "No such file" in tree.locked("/sys/new")
    if os.geteuid() != 0:
        (tmp_path / "sys/b").chmod(0o444)
        assert tree.locked("/sys/b") == NEEDS_ROOT


def test_every_setting_is_described() -> None:
    text = (paths.root() / "docs/machines.md").read_text()
    rows = [
        line.split("|")[1] for line in text.partition("## What tune changes")[2].splitlines() if line.startswith("| ")
    ]
    described = {name.strip() for row in rows for name in row.split(",")}
    assert set(settings.names()) <= described
