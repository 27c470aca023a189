"""The version that records, descriptions, journals, manifests and results share: they change together."""

from __future__ import annotations

from loam_lab.base.errors import LoamError

SCHEMA = 2
_CHANGED = {
    1: "since schema 2 a synchronisation has a kind, and what only a transactional memory counts lies under `tm`",
}


def problem(version: object) -> str:
    """Why something of another version cannot be read: both versions, and what has changed since where that is known."""
    changed = _CHANGED.get(version) if isinstance(version, int) else None
    return f"has schema {version}, this lab reads {SCHEMA}" + (f"; {changed}" if changed else "")


def check(subject: object, version: object) -> None:
    """Refuses a journal, manifest or result of another version.

    subject: the file
    raises: LoamError with the reason and what to do
    """
    if version != SCHEMA:
        raise LoamError(
            str(subject), None, problem(version),
            "measure again, or read it with the revision that wrote it; campaign.json has its command and revision",
        )  # fmt: skip
