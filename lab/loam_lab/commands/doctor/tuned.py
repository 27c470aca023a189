"""What `loam tune --apply` has changed and nobody has put back."""

from __future__ import annotations

from collections.abc import Iterator

from loam_lab.base.errors import LoamError
from loam_lab.commands.doctor.finding import Finding, View, plural
from loam_lab.setup.tune import steps
from loam_lab.setup.tune.journal import Journal, boot_name, default


def check(view: View) -> Iterator[Finding]:
    """Settings that are as this user's tune set them."""
    yield from of(view, default())


def of(view: View, journal: Journal) -> Iterator[Finding]:
    """The same of a given journal; nothing where nothing of it is in force."""
    try:
        entries = journal.open_entries()
    except LoamError as error:
        yield Finding("noise", "tune", "fine", error.limit, "what was changed is not known", error.hint)
        return
    boot = view.tree.read(boot_name()).strip()
    ours = [entry for entry in entries if steps.judge(view.tree, entry, boot).how == "as we set it"]
    if ours:
        names = ", ".join(dict.fromkeys(entry.name for entry in ours))
        yield Finding(
            "noise", "tune", "fine", f"{plural(len(ours), 'file')} changed by loam tune since {ours[0].utc}: {names}",
            "results from before and after come from two differently configured machines", "./loam tune --restore restores them",
        )  # fmt: skip
