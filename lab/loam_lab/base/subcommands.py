"""Commands whose subjects are the files of a folder: `loam page NAME` and `loam selfcheck NAME`.

A module of the folder that defines `main(arguments)` is a subject.  Its name is the file's with dashes, and the first
line of its docstring is what the listing shows.  A new subject is one new file.
"""

from __future__ import annotations

import argparse
import ast
import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from loam_lab.base import console
from loam_lab.base.errors import LoamError, unknown


class Parser(argparse.ArgumentParser):
    """The options of one subject. A mistake is a LoamError, as it is in the other commands.

    command: "page" or "selfcheck"; subject: its name; text: the module's docstring
    """

    def __init__(self, command: str, subject: str, text: str | None) -> None:
        super().__init__(
            prog=f"loam {command} {subject}", description=text, formatter_class=argparse.RawDescriptionHelpFormatter
        )

    def error(self, message: str) -> NoReturn:
        """See ArgumentParser."""
        raise LoamError(self.prog, None, message, f"{self.prog} --help")


def count(text: str) -> int:
    """The value of an option that says how many.

    raises: argparse.ArgumentTypeError for what is no whole number, or less than 1
    """
    if not text.removeprefix("-").isdigit():
        raise argparse.ArgumentTypeError(f"{text}: must be a whole number")
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: at least 1 is needed")
    return int(text)


def listed(package: str) -> dict[str, str]:
    """The subjects of a package by name, each with the first line of its docstring; nothing is imported."""
    folder = Path(__file__).parents[1].joinpath(*package.split("."))
    summaries = {}
    for file in sorted(folder.glob("*.py")):
        tree = ast.parse(file.read_text())
        if any(isinstance(node, ast.FunctionDef) and node.name == "main" for node in tree.body):
            summaries[file.stem.replace("_", "-")] = (ast.get_docstring(tree) or "").partition("\n")[0]
    return summaries


def run(package: str, kind: str, arguments: Sequence[str]) -> int:
    """Run the subject that the arguments begin with, or list all of them where they name none, with --json as JSON.

    package: below loam_lab, as presenting.pages; kind: the word for a subject
    returns: the exit status
    raises: LoamError with the nearest name if there is no such subject
    """
    subjects = listed(package)
    if list(arguments) == ["--json"]:
        named = [{"name": name, "summary": about} for name, about in subjects.items()]
        console.print_json({"schema": 1, f"{kind}s": named})
        return 0
    if not arguments or arguments[0] in ("-h", "--help"):
        width = max(map(len, subjects))
        print("\n".join(f"{name:<{width}}  {about}" for name, about in subjects.items()))
        return 0
    name = arguments[0]
    if name not in subjects:
        raise unknown(kind, name, subjects, kind)
    module = importlib.import_module(f"loam_lab.{package}.{name.replace('-', '_')}")
    try:
        status: int = module.main(list(arguments[1:]))
    except SystemExit as done:  # argparse's --help
        return int(done.code or 0)
    return status
