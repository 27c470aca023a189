"""What a test of GCC's says of itself in its comments: `{ dg-do run }` and the like, as DejaGnu reads them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatch

TARGET = "x86_64-pc-linux-gnu"
# What tests may require, by its name.
CAPABILITIES = {
    "lp64": True,
    "ilp32": False,
    "ia32": False,
    "x32": False,
    "pthread": True,
    "tls": True,
    "fgnu_tm": True,
}
STEPS = ("run", "link", "assemble", "compile")

_DIRECTIVE = re.compile(r"\{[ \t]+(dg-[-a-z]+)[ \t]+(.*)[ \t]+\}")


class Unreadable(Exception):
    """A directive that is not understood, in words."""


@dataclass
class Directives:
    """What a test wants. fails_to_...: it is expected to; skipped: why it is left out here, "" if it is not."""

    do: str = "run"
    options: tuple[str, ...] = ()  # in the place of the suite's; none: the suite's
    additional_options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    fails_to_compile: bool = False
    fails_to_run: bool = False
    timeout_factor: float = 1.0
    skipped: str = ""


def words(text: str) -> list[str]:
    """The words of a list of Tcl's: bare, in double quotes, or in braces, which may hold others.

    raises: Unreadable
    """
    texts, at = [], 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] == "{":
            end, depth = at, 0
            while end < len(text):
                depth += {"{": 1, "}": -1}.get(text[end], 0)
                end += 1
                if depth == 0:
                    break
            if depth != 0:
                raise Unreadable(f"a brace is not closed: {text}")
            texts.append(text[at + 1 : end - 1])
            at = end
        elif text[at] == '"':
            end = text.find('"', at + 1)
            if end < 0:
                raise Unreadable(f"a quotation is not closed: {text}")
            texts.append(text[at + 1 : end])
            at = end + 1
        else:
            bare = re.match(r"\S+", text[at:])
            assert bare is not None
            texts.append(bare[0])
            at += len(bare[0])
    return texts


def holds(selector: str) -> bool:
    """Whether a selector is true of this target: patterns of its name, capabilities, `!`, `&&`, `||`.

    raises: Unreadable
    """
    parts = words(selector)
    if not parts:
        raise Unreadable("a selector is empty")
    if parts[0] == "!":
        if len(parts) != 2:
            raise Unreadable(f"`!` is followed by one selector, not by {len(parts) - 1}: {selector}")
        return not holds(parts[1])
    if len(parts) == 3 and parts[1] in ("&&", "||"):
        both = holds(parts[0]), holds(parts[2])
        return all(both) if parts[1] == "&&" else any(both)
    if len(parts) > 1:
        return any(holds(part) for part in parts)
    if len(words(parts[0])) > 1 or parts[0] != selector.strip():
        return holds(parts[0])
    if "-" in parts[0]:
        return fnmatch(TARGET, parts[0])
    if parts[0] not in CAPABILITIES:
        raise Unreadable(f"it is not known whether this target is {parts[0]}")
    return CAPABILITIES[parts[0]]


def _applies(arguments: list[str]) -> bool:
    """Of "comment" { selector } [{ with these options } { without those }]."""
    if len(arguments) < 2:
        raise Unreadable("a comment and a selector are expected")
    if any(option.strip() not in ("", "*") for option in arguments[2:]):
        raise Unreadable("a condition on options is not understood")
    return holds(arguments[1])


def _do(wanted: Directives, arguments: list[str]) -> None:
    if arguments[0] not in STEPS:
        raise Unreadable(f"dg-do {arguments[0]} is not understood")
    wanted.do = arguments[0]
    for condition in arguments[1:]:
        kind, _, selector = condition.strip().partition(" ")
        if kind == "target":
            if not holds(selector):
                wanted.skipped = f"is for {selector.strip()}"
        elif kind == "xfail":
            _expect(wanted, holds(selector), runs=arguments[0] == "run")
        else:
            raise Unreadable(f"dg-do with {kind} is not understood")


def _expect(wanted: Directives, fails: bool, *, runs: bool) -> None:
    if runs:
        wanted.fails_to_run |= fails
    else:
        wanted.fails_to_compile |= fails


def _options(wanted: Directives, arguments: list[str]) -> None:
    if len(arguments) == 1 or _selected(arguments[1]):
        wanted.options = tuple(arguments[0].split())


def _additional_options(wanted: Directives, arguments: list[str]) -> None:
    if len(arguments) == 1 or _selected(arguments[1]):
        wanted.additional_options += tuple(arguments[0].split())


def _selected(condition: str) -> bool:
    """Of { target SELECTOR }."""
    kind, _, selector = condition.strip().partition(" ")
    if kind != "target":
        raise Unreadable(f"options for {kind} are not understood")
    return holds(selector)


def _skip_if(wanted: Directives, arguments: list[str]) -> None:
    if _applies(arguments):
        wanted.skipped = arguments[0] or "is skipped here"


def _require(wanted: Directives, arguments: list[str]) -> None:
    if not holds(arguments[0]):
        wanted.skipped = f"needs {arguments[0]}"


def _variable(wanted: Directives, arguments: list[str]) -> None:
    if len(arguments) != 2:
        raise Unreadable("dg-set-target-env-var has a name and a value")
    wanted.environment[arguments[0]] = arguments[1]


def _timeout_factor(wanted: Directives, arguments: list[str]) -> None:
    wanted.timeout_factor *= float(arguments[0])


_KNOWN: dict[str, Callable[[Directives, list[str]], None]] = {
    "dg-do": _do,
    "dg-options": _options,
    "dg-additional-options": _additional_options,
    "dg-skip-if": _skip_if,
    "dg-xfail-if": lambda wanted, arguments: _expect(wanted, _applies(arguments), runs=False),
    "dg-xfail-run-if": lambda wanted, arguments: _expect(wanted, _applies(arguments), runs=True),
    "dg-require-effective-target": _require,
    "dg-set-target-env-var": _variable,
    "dg-timeout-factor": _timeout_factor,
}


def read(text: str) -> Directives:
    """The directives of a test's text.

    raises: Unreadable if one is not understood: the test would not be what its author meant
    """
    wanted = Directives()
    for name, rest in _DIRECTIVE.findall(text):
        if name not in _KNOWN:
            raise Unreadable(f"{name} is not understood")
        arguments = words(rest)
        if not arguments:
            raise Unreadable(f"{name} has no argument")
        _KNOWN[name](wanted, arguments)
    return wanted
