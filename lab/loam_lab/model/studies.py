"""Studies as files: read one, list those of the checkout, find one by its name."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from loam_lab.base import paths, toml_errors
from loam_lab.base.errors import LoamError, unknown
from loam_lab.model import consistent
from loam_lab.model.study import Study


def load(file: Path) -> Study:
    """A study from its file.

    raises: LoamError naming file, line, place, reason and the nearest name
    """
    text, content = toml_errors.read(file, subject="study", listing="loam study list")
    try:
        study = Study.model_validate(content)
    except ValidationError as problem:
        raise toml_errors.located(
            problem, subject="study", file=file, text=text, model=Study, hint="see studies/tour.toml for an example"
        ) from None
    for where, wrong, hint in consistent.mistakes(study):
        place = f"{file}:{toml_errors.line_of(text, where)}"
        raise LoamError("study", place, f"{toml_errors.spelled(where)}: {wrong}", hint)
    return study


def registry() -> dict[str, Path]:
    """Studies of the checkout by name."""
    folder = paths.root() / "studies"
    return {file.stem: file for file in sorted(folder.glob("*.toml"))}


def find(name: str) -> tuple[Study, Path]:
    """The study of that name or alias, or of that file.

    raises: LoamError with the nearest name if there is none
    """
    known = registry()
    if name in known:
        return load(known[name]), known[name]
    if "/" in name or name.endswith(".toml"):
        return load(Path(name)), Path(name)
    aliases: dict[str, Path] = {}
    for file in known.values():
        for alias in load(file).aliases:
            aliases[alias] = file
    if name in aliases:
        return load(aliases[name]), aliases[name]
    raise unknown("study", name, [*known, *aliases], "study")
