"""Errors that a user can act on: subject, value, limit and next step in one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any


class LoamError(Exception):
    """A failure the user can act on; printed as one line, never with a traceback.

    subject: what is wrong, as the user typed or would look for it ("--threads", "allocators/x.toml")
    value: the offending value; None where there is none to show
    limit: what holds instead ("this machine has 2 hardware threads")
    hint: the next step ("add --oversubscribe to allow more")
    exit_code: status of the process; 2 means bad input or a machine that lacks something
    """

    def __init__(
        self, subject: str, value: object = None, limit: str = "", hint: str = "", *, exit_code: int = 2
    ) -> None:
        self.subject = subject
        self.value = value
        self.limit = limit
        self.hint = hint
        self.exit_code = exit_code
        super().__init__(self.line())

    def line(self) -> str:
        """The message without the leading "error: "."""
        text = self.subject if self.value is None else f"{self.subject}={self.value}"
        if self.limit:
            text += f": {self.limit}"
        if self.hint:
            text += f" ({self.hint})"
        return text

    def as_json(self) -> dict[str, Any]:
        """The same as an object, for --json: subject, value, limit, hint, message, exit_code."""
        return {
            "subject": self.subject,
            "value": None if self.value is None else str(self.value),
            "limit": self.limit,
            "hint": self.hint,
            "message": self.line(),
            "exit_code": self.exit_code,
        }


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The known name closest to a mistyped one, or None where nothing is close.

    name: what was typed; names: what exists
    """
    known = list(names)
    folded = {known_name.lower(): known_name for known_name in known}
    matches = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    return folded[matches[0]] if matches else None


def unknown(subject: str, value: str, names: Iterable[str], what: str) -> LoamError:
    """The error for a name that no registry has.

    subject: option or argument; what: kind of thing in the singular ("allocator"); names: what exists
    returns: the error to raise; its hint is the nearest name, or the whole list where nothing is near
    """
    known = sorted(names)
    close = nearest(value, known)
    if close:
        hint = f"did you mean {close}?"
    elif known:
        hint = "there are: " + ", ".join(known)
    else:
        hint = "none is known yet"
    article = "an" if what[:1] in "aeiou" else "a"
    return LoamError(subject, value, f"not the name of {article} {what}", hint)
