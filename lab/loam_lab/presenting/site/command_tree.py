"""The commands of the command line as data, for man pages and for the reference of the site."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import typer


@dataclass(frozen=True)
class Option:
    """One option or argument. names: as typed, such as "-p, --parameter"; value: what it takes, "" for a flag"""

    names: str
    value: str
    help: str


@dataclass(frozen=True)
class Command:
    """One command. words: "loam study run"; about: its first sentence; more: the rest of its help"""

    words: str
    about: str
    more: str
    arguments: tuple[Option, ...]
    options: tuple[Option, ...]

    @property
    def usage(self) -> str:
        """What is typed, in one line."""
        options = " [OPTIONS]" if self.options else ""
        return f"{self.words}{options}{''.join(f' {argument.names}' for argument in self.arguments)}"


def commands(group: Any) -> Iterator[Command]:
    """Every visible command below the root of a command line, in the order of its help."""
    for name, command in group.commands.items():
        yield from _below(command, f"loam {name}")


def _below(command: Any, words: str) -> Iterator[Command]:
    if command.hidden:
        return
    below = getattr(command, "commands", None)
    if below:
        for name, one in below.items():
            yield from _below(one, f"{words} {name}")
        return
    text = plain(command.help or "").strip()
    about, _, more = text.partition("\n\n")
    arguments, options = [], []
    for parameter in command.params:
        shown = plain(parameter.help or "")
        if parameter.param_type_name == "argument":
            metavar = str(parameter.metavar or parameter.name).upper()
            arguments.append(Option(metavar if parameter.required else f"[{metavar}]", "", shown))
        elif not parameter.hidden:
            value = (
                ""
                if parameter.is_flag
                else str(parameter.metavar or parameter.display_type(typer.Context(command))).upper()
            )
            options.append(Option(", ".join([*parameter.opts, *parameter.secondary_opts]), value, shown))
    yield Command(words, " ".join(about.split()), more.strip(), tuple(arguments), tuple(options))


def plain(text: str) -> str:
    """Help without the marks of its colours."""
    return re.sub(r"\[/?[a-z ]+\]", "", text)
