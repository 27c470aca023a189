"""Apply and restore, step by step: each may be killed after any step and be run again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from loam_lab.base.tree import Tree
from loam_lab.setup.tune.journal import Entry, Journal, boot_name
from loam_lab.setup.tune.settings import Change


@dataclass(frozen=True)
class Step:
    """What became of one file.

    how: "set", "failed", "restored", "already back", "undone by a reboot", "changed meanwhile", "gone"
    value: what the file holds now; detail: the reason of a failure, or what else there is to know
    """

    name: str
    path: str
    before: str
    after: str
    how: str
    value: str
    detail: str = ""


def apply(tree: Tree, journal: Journal, changes: Iterable[Change]) -> Iterator[Step]:
    """Make the changes, each noted in the held journal before it is made."""
    boot = tree.read(boot_name()).strip()
    outstanding = {entry.path: entry for entry in journal.open_entries()}
    for change in changes:
        earlier = outstanding.get(change.path)
        if earlier is not None:
            # It is not as we set it, or it would not be changed again: a reboot or somebody else undid it.
            journal.close(change.path, "replaced")
        journal.set(name=change.setting.name, path=change.path, before=change.before, after=change.after, boot=boot)
        problem = _write(tree, change.path, change.after)
        if problem:
            if tree.value(change.path) != change.before:
                _write(tree, change.path, change.before)  # the kernel made something else of it
            journal.close(change.path, "failed")
        how, value = "failed" if problem else "set", tree.value(change.path)
        yield Step(change.setting.name, change.path, change.before, change.after, how, value, problem)


def restore(tree: Tree, journal: Journal) -> Iterator[Step]:
    """Put back what is still as we set it, the last change first, and close every entry of the held journal.

    An entry stays open only if the value could not be written, so that the next restore tries again.
    """
    boot = tree.read(boot_name()).strip()
    for entry in reversed(journal.open_entries()):
        outcome = judge(tree, entry, boot)
        if outcome.how == "as we set it":
            problem = _write(tree, entry.path, entry.before)
            outcome = _outcome(entry, "failed" if problem else "restored", tree.value(entry.path), problem)
        if outcome.how != "failed":
            journal.close(entry.path, outcome.how)
        yield outcome


def judge(tree: Tree, entry: Entry, boot: str) -> Step:
    """How an open entry stands: "as we set it", or one of Step's words for what needs no writing.

    boot: of now. After a reboot no value is ours, even an equal one: the system's own configuration set it.
    """
    if not tree.exists(entry.path):
        return _outcome(entry, "gone", "", "the file is no longer there")
    value = tree.value(entry.path)
    if entry.boot != boot:
        if value == entry.before:
            return _outcome(entry, "undone by a reboot", value)
        return _outcome(entry, "changed meanwhile", value, f"since a reboot the system itself sets {value}; left alone")
    if value == entry.before:
        return _outcome(entry, "already back", value, "it was already restored, or never changed")
    if value != entry.after:
        return _outcome(entry, "changed meanwhile", value, f"somebody else set it to {value}; left alone")
    return _outcome(entry, "as we set it", value)


def _outcome(entry: Entry, how: str, value: str, detail: str = "") -> Step:
    return Step(entry.name, entry.path, entry.before, entry.after, how, value, detail)


def _write(tree: Tree, path: str, value: str) -> str:
    """Write and read back. returns: "" or why the value is not there now."""
    try:
        tree.write(path, value)
    except OSError as problem:
        return str(problem.strerror)
    read_back = tree.value(path)
    return "" if read_back == value else f"the kernel accepted {value} but shows {read_back}"
