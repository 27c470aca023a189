"""`loam tune`: show, make or undo changes of machine settings. Without an option it only shows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.base.tree import NEEDS_ROOT, Tree
from loam_lab.setup.tune import steps
from loam_lab.setup.tune.journal import Journal, boot_name, default
from loam_lab.setup.tune.settings import Change, changes

_CONTAINER = ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")


def tune(
    mode: str, only: Sequence[str], *, as_json: bool, tree: Tree | None = None, journal: Journal | None = None
) -> int:
    """Do what a mode says and print it.

    mode: "dry-run", "apply" or "restore"; only: names of settings, () for all; not for restore
    tree, journal: the machine's and the user's where None
    returns: 1 if a value could not be written, else 0
    raises: LoamError without root, for an unknown name, and where no setting can be written
    """
    tree, journal = tree or Tree(), journal or default()
    if mode == "restore":
        return _restore(tree, journal, as_json)
    wanted = list(changes(tree, only))
    if mode == "dry-run":
        _show(tree, journal, wanted, as_json)
        return 0
    return _apply(tree, journal, wanted, as_json)


def _apply(tree: Tree, journal: Journal, wanted: list[Change], as_json: bool) -> int:
    locked = [change for change in wanted if change.locked]
    if locked and not as_json:
        _commands(locked)
    if locked:
        # All or nothing: half of the settings would be a third kind of machine.
        names = ",".join(dict.fromkeys(change.setting.name for change in locked))
        if any(change.locked == NEEDS_ROOT for change in locked):
            raise LoamError(
                "tune --apply", None, "needs root; nothing was changed", "sudo ./loam tune --apply, or the lines above"
            )
        raise LoamError(
            "tune --apply", names, f"cannot be written: {locked[0].locked}; nothing was changed",
            "apply it on the host, or choose others by --only",
        )  # fmt: skip
    with journal.held():
        outcomes = list(steps.apply(tree, journal, wanted))
    return _report(tree, "apply", outcomes, as_json)


def _restore(tree: Tree, journal: Journal, as_json: bool) -> int:
    boot, entries = tree.read(boot_name()).strip(), journal.open_entries()
    if not entries:
        return _report(tree, "restore", [], as_json)
    ours = [
        entry for entry in entries
        if steps.judge(tree, entry, boot).how == "as we set it" and tree.locked(entry.path)
    ]  # fmt: skip
    if ours:
        reason = tree.locked(ours[0].path)
        if not as_json:
            for entry in ours:
                console.out().print(f"echo {entry.before} > {entry.path}", markup=False, soft_wrap=True)
        hint = (
            "sudo ./loam tune --restore as the user who applied, or the lines above"
            if reason == NEEDS_ROOT
            else "restore it on the host"
        )
        raise LoamError("tune --restore", None, f"{reason}; nothing was restored", hint)
    with journal.held():
        outcomes = list(steps.restore(tree, journal))
    return _report(tree, "restore", outcomes, as_json)


def _report(tree: Tree, mode: str, outcomes: list[steps.Step], as_json: bool) -> int:
    failed = any(outcome.how == "failed" for outcome in outcomes)
    if as_json:
        console.print_json({"schema": 1, "mode": mode, "changes": [asdict(outcome) for outcome in outcomes]})
        return int(failed)
    if not outcomes:
        console.out().print("nothing to change" if mode == "apply" else "nothing to restore", style="good")
        return 0
    rows = []
    for outcome in outcomes:
        value = outcome.before if outcome.how == "restored" else outcome.after
        was = outcome.after if outcome.how == "restored" else outcome.before
        done = outcome.how in ("set", "restored")
        what = f"{was} -> {value}" if done else f"is {outcome.value}" if outcome.value else ""
        rows.append(
            [outcome.name, outcome.how, what, f"{outcome.detail}; {outcome.path}" if outcome.detail else outcome.path]
        )
    console.out().print(console.table(["setting", "", "value", "where"], rows))
    if mode == "apply":
        _warn_about_container(tree)
        console.out().print("Until a reboot, or: ./loam tune --restore", style="aside")
    return int(failed)


def _show(tree: Tree, journal: Journal, wanted: list[Change], as_json: bool) -> None:
    boot = tree.read(boot_name()).strip()
    applied = [steps.judge(tree, entry, boot) for entry in journal.open_entries()]
    if as_json:
        console.print_json(
            {"schema": 1, "mode": "dry-run", "changes": [_as_json(change) for change in wanted],
             "applied": [asdict(outcome) for outcome in applied]}
        )  # fmt: skip
        return
    out = console.out()
    if wanted:
        rows = [
            [change.setting.name, change.before, change.after, f"{change.setting.why}. Risk: {change.setting.risk}"
             + (f". Cannot be written: {change.locked}" if change.locked else "")]
            for change in _one_per_setting(wanted)
        ]  # fmt: skip
        out.print(console.table(["setting", "is", "would be", "why"], rows))
        _warn_about_container(tree)
        names = ",".join(dict.fromkeys(change.setting.name for change in wanted))
        out.print(
            "Nothing was changed. As root: [command]./loam tune --apply[/command] makes these changes,", soft_wrap=True
        )
        out.print(f"[command]./loam tune --apply --only {names}[/command] some of them.", soft_wrap=True)
    else:
        out.print("nothing to change", style="good")
    for outcome in applied:
        state = "set by an earlier --apply; --restore restores it" if outcome.how == "as we set it" else outcome.how
        out.print(f"{outcome.name}: {outcome.before} -> {outcome.after}: {state}", markup=False, soft_wrap=True)


def _one_per_setting(wanted: list[Change]) -> list[Change]:
    """The first of the files that get the same change, such as those of every processor."""
    return list({(change.setting, change.before): change for change in reversed(wanted)}.values())[::-1]


def _as_json(change: Change) -> dict[str, Any]:
    return {
        "name": change.setting.name, "path": change.path, "before": change.before, "after": change.after,
        "why": change.setting.why, "risk": change.setting.risk, "locked": change.locked,
    }  # fmt: skip


def _commands(wanted: list[Change]) -> None:
    """Print what root would have to type; the values are the kernel's words and need no quotes."""
    for change in wanted:
        console.out().print(
            f"echo {change.after} > {change.path}    # is {change.before}", markup=False, soft_wrap=True
        )


def _warn_about_container(tree: Tree) -> None:
    if any(tree.exists(name) for name in _CONTAINER) and os.geteuid() == 0:
        console.warn(
            "this is a container; the settings are the host's and affect everything on it; apply them on your own machine"
        )
