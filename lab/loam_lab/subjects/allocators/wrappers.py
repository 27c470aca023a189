"""Programs that execute the rest of their command line: what stands behind them is what is measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class _Wrapper:
    """How to read its command line.

    values: options whose value is the next word, unless they hold it; words: how many of its own come before the command
    assigns: whether NAME=VALUE may come before it
    """

    values: frozenset[str] = frozenset()
    words: int = 0
    assigns: bool = False


def _of(values: str = "", words: int = 0, *, assigns: bool = False) -> _Wrapper:
    return _Wrapper(frozenset(values.split()), words, assigns)


_WRAPPERS: Mapping[str, _Wrapper] = {
    "setpriv": _of(
        "--ambient-caps --inh-caps --bounding-set --ruid --euid --reuid --rgid --egid --regid --groups --securebits "
        "--pdeathsig --selinux-label --apparmor-profile --landlock-access --landlock-rule --seccomp-filter --ptracer"
    ),
    "env": _of("-u --unset -C --chdir --default-signal --ignore-signal", assigns=True),
    "nice": _of("-n --adjustment"),
    "taskset": _of(words=1),
    "ionice": _of("-c --class -n --classdata"),
    "chrt": _of("-T --sched-runtime -P --sched-period -D --sched-deadline", words=1),
    "numactl": _of(
        "-N --cpunodebind -C --physcpubind -m --membind -i --interleave -p --preferred -w --weighted-interleave"
    ),
    "stdbuf": _of("-i --input -o --output -e --error"),
    "timeout": _of("-k --kill-after -s --signal", words=1),
    "runuser": _of("-u --user -g --group -G --supp-group -w --whitelist-environment"),
    "gosu": _of(words=1),
    "su-exec": _of(words=1),
    "nohup": _of(),
    "setsid": _of(),
}
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def behind(command: Sequence[str]) -> Sequence[str]:
    """The command that is executed in the end; the one that is given where no wrapper is known, or nothing stands behind it."""
    inner = command
    while inner and (wrapper := _WRAPPERS.get(Path(inner[0]).name)) is not None:
        rest = _rest(wrapper, inner[1:])
        if not rest:
            return inner
        inner = rest
    return inner


def _rest(wrapper: _Wrapper, words: Sequence[str]) -> Sequence[str]:
    """What follows a wrapper's own words."""
    at, own = 0, wrapper.words
    while at < len(words):
        word = words[at]
        if word == "--":
            return words[at + 1 + own :]
        if word.startswith("-"):
            at += 2 if word in wrapper.values else 1
        elif own:
            own -= 1
            at += 1
        elif wrapper.assigns and _ASSIGNMENT.match(word):
            at += 1
        else:
            return words[at:]
    return ()
