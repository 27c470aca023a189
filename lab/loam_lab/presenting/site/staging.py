"""The source of the site: the pages of docs/, README as the front page, generated reference, links that fit.

The map of the documentation, docs/README.md, gives the order and the parts of the navigation: no list is kept by hand.
"""

from __future__ import annotations

import os
import posixpath
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from loam_lab.base import paths

MAP = "docs/README.md"
# Pages outside of docs/, and where they lie in the site.
FRONT = {"README.md": "index.md", "ARCHITECTURE.md": "architecture.md", "CONTRIBUTING.md": "contributing.md",
         "CHANGELOG.md": "changelog.md", MAP: "map.md"}  # fmt: skip
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_HEADING = re.compile(r"## (?:.*\((.+)\)|(.+))")
_ITEM = re.compile(r"(?:[-*] |\d+\. )")


def stage(folder: Path, generated: Mapping[str, str]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Write the source of the site into a folder, which is made anew.

    generated: further pages by name; returns: the navigation, parts with (title, page) in order
    """
    shutil.rmtree(folder, ignore_errors=True)
    root = paths.root()
    for file in sorted((root / "docs").rglob("*")):
        if file.is_file() and file.suffix != ".md":
            target = folder / file.relative_to(root / "docs")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    placed = _places()
    for name, place in placed.items():
        _write(folder / place, _fitted((root / name).read_text(), name, placed))
    for name, text in generated.items():
        _write(folder / "reference" / name, text)
    return navigation((root / MAP).read_text(), placed, generated)


def _places() -> dict[str, str]:
    """Where each page of the checkout lies in the site."""
    root = paths.root()
    places = {name: place for name, place in FRONT.items() if (root / name).is_file()}
    for file in sorted((root / "docs").rglob("*.md")):
        name = file.relative_to(root).as_posix()
        places.setdefault(name, name.removeprefix("docs/"))
    return places


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def _fitted(text: str, name: str, placed: Mapping[str, str]) -> str:
    """A page whose links lead where its neighbours lie in the site, in the Markdown that the site reads."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            line = _LINK.sub(lambda match: match[1] + _target(match[2], name, placed) + match[3], line)
            # A list may follow a paragraph at once for GitHub, not for the site.
            before = lines[-1] if lines else ""
            if _ITEM.match(line) and before.strip() and not _ITEM.match(before) and not before.startswith(" "):
                lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"


def _target(link: str, name: str, placed: Mapping[str, str]) -> str:
    file, mark, anchor = link.partition("#")
    if not file or "://" in file or file.startswith("mailto:"):
        return link
    meant = posixpath.normpath(posixpath.join(posixpath.dirname(name), file))
    place = placed.get(meant, meant.removeprefix("docs/"))
    return posixpath.relpath(place, posixpath.dirname(placed[name]) or ".") + mark + anchor


def navigation(
    text: str, placed: Mapping[str, str], generated: Mapping[str, str]
) -> list[tuple[str, list[tuple[str, str]]]]:
    """The parts of the map with their pages; what is generated is a part of its own before the contributor's.

    text: of docs/README.md
    """
    parts: list[tuple[str, list[tuple[str, str]]]] = [("", [("Loam", "index.md"), ("Map", "map.md")])]
    seen = {"index.md", "map.md"}
    for line in text.splitlines():
        if match := _HEADING.match(line):
            parts.append(((match[1] or match[2]).strip().capitalize(), []))
            if match[1] == "contributor":
                own = [(name.removesuffix(".md").replace("-", " "), f"reference/{name}") for name in generated]
                parts.insert(-1, ("Reference", own))
        for _, link, _ in _LINK.findall(line) if line.startswith("| ") or not line.startswith(("#", "Start")) else ():
            meant = posixpath.normpath(posixpath.join("docs", link.partition("#")[0]))
            page = placed.get(meant)
            if page and page not in seen and len(parts) > 1:
                seen.add(page)
                parts[-1][1].append((_title(paths.root() / meant), page))
    left = [(_title(paths.root() / name), page) for name, page in placed.items() if page not in seen]
    return [part for part in [*parts, ("More", left)] if part[1]]


def _title(file: Path) -> str:
    first = next((line for line in file.read_text().splitlines() if line.startswith("# ")), f"# {file.stem}")
    return first.removeprefix("# ").replace("`", "")


def size(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum((Path(top) / name).stat().st_size for top, _, names in os.walk(folder) for name in names)
