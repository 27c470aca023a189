"""Man pages and shell completions, from the help that the commands print."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from loam_lab import __version__
from loam_lab.base import console
from loam_lab.presenting.site.command_tree import Command, Option, commands

# Where each shell looks for the completion of a program, below a prefix such as /usr.
COMPLETIONS = {
    "bash": "share/bash-completion/completions/loam",
    "zsh": "share/zsh/site-functions/_loam",
    "fish": "share/fish/vendor_completions.d/loam.fish",
}
MAN = "share/man/man1"
# zsh loads the file of a completion as a function at the first completion. That first call must answer too.
_ZSH_FIRST = '\n\nif [ "$funcstack[1]" = "_loam" ]; then\n  _loam_completion "$@"\nfi'
# By which a shell asks `loam` for the words that may follow.
VARIABLE = "_LOAM_COMPLETE"


def run(root: Any, out: Path, *, as_json: bool = False) -> int:
    """Write all of them below a prefix and say where; root: of the command line."""
    written = [*write_pages(root, out / MAN), *write_completions(out)]
    if as_json:
        console.print_json({"schema": 1, "files": [str(file) for file in written]})
        return 0
    console.out().print(f"{len(written)} files below {out}", soft_wrap=True, markup=False)
    return 0


def write_pages(root: Any, folder: Path) -> list[Path]:
    """A page for `loam` and one for each command; returns: the files."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = list(commands(root))
    pages = {"loam": _overview(listed, " ".join((root.help or "").split()))}
    pages |= {command.words.replace(" ", "-"): _page(command, listed) for command in listed}
    for name, text in pages.items():
        (folder / f"{name}.1").write_text(text)
    return [folder / f"{name}.1" for name in pages]


def write_completions(prefix: Path) -> list[Path]:
    """The completion of each shell where it looks for it; returns: the files."""
    from typer._completion_shared import get_completion_script

    for shell, name in COMPLETIONS.items():
        (prefix / name).parent.mkdir(parents=True, exist_ok=True)
        script = get_completion_script(prog_name="loam", complete_var=VARIABLE, shell=shell)
        (prefix / name).write_text(script + (_ZSH_FIRST if shell == "zsh" else "") + "\n")
    return [prefix / name for name in COMPLETIONS.values()]


def _head(name: str, about: str) -> list[str]:
    seconds = os.environ.get("SOURCE_DATE_EPOCH", "")
    day = datetime.fromtimestamp(int(seconds), UTC).strftime("%Y-%m-%d") if seconds.isdigit() else ""
    return [f'.TH "{name.upper()}" 1 "{day}" "loam {__version__}"', ".SH NAME", f"{_safe(name)} \\- {_safe(about)}"]


def _overview(listed: Sequence[Command], about: str) -> str:
    lines = _head("loam", about)
    lines += [".SH SYNOPSIS", "\\fBloam\\fR COMMAND [OPTIONS] ...", ".SH COMMANDS"]
    for command in listed:
        lines += [".TP", f"\\fB{_safe(command.words)}\\fR", _safe(command.about)]
    lines += [".SH SEE ALSO", ", ".join(f"\\fB{_safe(c.words.replace(' ', '-'))}\\fR(1)" for c in listed)]
    return "\n".join(lines) + "\n"


def _page(command: Command, listed: Sequence[Command]) -> str:
    name = command.words.replace(" ", "-")
    lines = [*_head(name, command.about), ".SH SYNOPSIS", f"\\fB{_safe(command.usage)}\\fR", ".SH DESCRIPTION"]
    lines += [
        _safe(command.about),
        *(word for part in command.more.split("\n\n") if part for word in (".PP", _safe(part))),
    ]
    for title, options in (("ARGUMENTS", command.arguments), ("OPTIONS", command.options)):
        if options:
            lines += [f".SH {title}", *(line for option in options for line in _option(option))]
    others = [c.words for c in listed if c.words.split()[1] == command.words.split()[1] and c != command]
    lines += [".SH SEE ALSO", ", ".join(f"\\fB{_safe(n.replace(' ', '-'))}\\fR(1)" for n in ["loam", *others])]
    return "\n".join(lines) + "\n"


def _option(option: Option) -> list[str]:
    value = f" \\fI{_safe(option.value)}\\fR" if option.value else ""
    return [".TP", f"\\fB{_safe(option.names)}\\fR{value}", _safe(option.help) or "\\&"]


def _safe(text: str) -> str:
    """Text that troff prints as it is."""
    joined = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{joined}" if joined.startswith((".", "'")) else joined
