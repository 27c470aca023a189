"""Documents say what is there: links, headings, source files, commands and options that they name exist."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import typer.main
from test_style import ROOT, complaints, files, show

from loam_lab.cli import main
from loam_lab.model import studies

SOURCE = re.compile(r"^[\w./{},-]+\.(?:hpp|cpp|h|c|S|py|toml|md)$")
FOLDER = re.compile(r"^[\w.-]+/(?:[\w.{},-]+/?)*$")
# Names that stand for any file, or for one of the reader's own.
# How far a line that an output names may be behind the head of its function.
FUNCTION_LINES = 40
MADE_UP = re.compile(r"(?:^|/)(?:NAME|PATH|mine|example|name|NNNN-\w+)\.")
# Folders that a build, a run or an installation makes.
MADE = (".loam/", "build/", "results/", "include/loam/runtime")
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^\s*```")


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.strip().lower())
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


@cache
def anchors(page: Path) -> frozenset[str]:
    lines, fenced = [], False
    for line in page.read_text().splitlines():
        fenced ^= bool(FENCE.match(line))
        if not fenced and (match := re.match(r"#+ (.*)", line)):
            lines.append(slug(match[1]))
    return frozenset(lines)


def dead_anchors(name: str, text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            file, _, anchor = target.partition("#")
            page = (ROOT / name).parent / file if file else ROOT / name
            if anchor and "://" not in target and page.suffix == ".md" and page.is_file():
                known = anchors(page.resolve())
                if anchor not in known:
                    yield number, f"the link leads to {target}; headings of that page are {', '.join(sorted(known))}"


@cache
def tree() -> frozenset[str]:
    """Every path of a file or folder, and every end of it that begins at a folder or a file."""
    ends: set[str] = set()
    for path in files():
        for part in (path, *path.parents):
            if part == ROOT:
                break
            words = part.relative_to(ROOT).parts
            ends.update("/".join(words[at:]) for at in range(len(words)))
    return frozenset(ends)


def braces(path: str) -> Iterator[str]:
    """ "a.{hpp,cpp}" is a.hpp and a.cpp."""
    parts = re.split(r"\{([^}]*)\}", path)
    for chosen in product(*(part.split(",") if at % 2 else [part] for at, part in enumerate(parts))):
        yield "".join(chosen)


def missing_files(name: str, text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        for code in CODE.findall(line):
            folder = FOLDER.match(code) and (ROOT / code.split("/")[0]).is_dir() and not code.startswith(MADE)
            if not (SOURCE.match(code) or folder) or MADE_UP.search(code):
                continue
            for path in braces(code.removeprefix("./").removesuffix("/")):
                if path not in tree() and not (ROOT / name).parent.joinpath(path).exists():
                    yield number, f"`{path}` is neither a file nor a folder of the tree"


def commands(text: str) -> Iterator[tuple[int, str]]:
    """(line, command) of each ./loam ... in a block of code or between backticks; continued lines are joined.

    One that is shown with its error is left out: it is there to be wrong.
    """
    fenced, begun, first = False, "", 0
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced and not line.startswith("    "):
            yield from ((number, code) for code in CODE.findall(line) if re.match(r"(sudo )?\./loam [a-z]", code))
        else:
            first = first if begun else number
            begun += line.strip().removeprefix("$ ")
            if begun.endswith("\\"):
                begun = begun[:-1]
                continue
            refused = "".join(lines[number : number + 1]).startswith("error:")
            if re.match(r"(sudo )?\./loam [a-z]", begun) and not refused:
                yield first, begun
            begun = ""


def wrong_commands(name: str, text: str) -> Iterator[tuple[int, str]]:
    top: Any = typer.main.get_command(main.app)
    for number, line in commands(text):
        words = re.split(r"\s{2,}", line.replace("[", " ").replace("]", " ").strip())[0]
        words = words.partition(" -- ")[0]
        try:
            given = shlex.split(words, comments=True)
        except ValueError:
            given = words.split()
        given = given[given.index("./loam") + 1 :]
        command: Any = top
        while given and hasattr(command, "commands"):
            if given[0].startswith("-"):
                break
            for choice in given[0].split("|"):
                if choice not in command.commands and not choice.isupper():
                    yield number, f"{line}: {choice} is no command; there are {', '.join(command.commands)}"
            command, given = command.commands.get(given[0].split("|")[0]), given[1:]
        if command is None or command.context_settings.get("ignore_unknown_options"):
            continue  # what follows belongs to another program
        options = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
        for word in given:
            option = word.partition("=")[0]
            if option.startswith("--") and option not in options | {"--help"}:
                yield number, f"{line}: {option} is no option of this command; there are {', '.join(sorted(options))}"


def stale_lines(name: str, text: str) -> Iterator[tuple[int, str]]:
    """Places as outputs show them, FILE:LINE (FUNCTION), where the function does not begin shortly before that line."""
    for number, line in enumerate(text.splitlines(), 1):
        for file, at, function in re.findall(r"([\w/.-]+\.(?:cpp|hpp|c)):(\d+) \((?:\w+::)*(\w+)\)", line):
            source = ROOT / file if (ROOT / file).is_file() else ROOT / "lab" / file
            if not source.is_file():
                yield number, f"{file} is no file of the tree"
            elif not re.search(
                rf"\b{function}\(", "\n".join(source.read_text().splitlines()[: int(at)][-FUNCTION_LINES:])
            ):
                yield number, f"{file}:{at} is not in {function}()"


def missing_modules(name: str, text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        for module in re.findall(r"-m (loam_lab(?:\.\w+)*)", line):
            if not list((ROOT / "lab").glob(module.replace(".", "/") + "*")):
                yield number, f"{module} is no module of the lab"


def test_links_lead_to_headings_that_exist() -> None:
    wrong = complaints(dead_anchors, suffixes={".md"})
    assert not wrong, show(wrong)


def test_source_files_that_documents_name_exist() -> None:
    wrong = complaints(missing_files, suffixes={".md"})
    assert not wrong, show(wrong)


def test_commands_in_documents_exist_with_their_options() -> None:
    wrong = complaints(wrong_commands, suffixes={".md"})
    assert not wrong, show(wrong)


def test_source_lines_that_documents_show_are_in_the_functions_that_they_name() -> None:
    wrong = complaints(stale_lines, suffixes={".md"})
    assert not wrong, show(wrong)


def test_modules_that_documents_run_exist() -> None:
    wrong = complaints(missing_modules, suffixes={".md"})
    assert not wrong, show(wrong)


def test_the_example_of_a_study_is_one(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(schema.*?)```", (ROOT / "docs/studies.md").read_text(), re.DOTALL)
    assert example
    (tmp_path / "mine.toml").write_text(example[1])
    assert studies.load(tmp_path / "mine.toml").name == "mine"


def test_the_map_leads_to_every_page() -> None:
    docs = ROOT / "docs"
    text = (docs / "README.md").read_text()
    linked = {(docs / target.split("#")[0]).resolve() for target in re.findall(r"\]\(([^)\s]+)\)", text)}
    pages = {path for path in docs.rglob("*.md") if path != docs / "README.md"}
    assert not (left_out := sorted(str(page.relative_to(docs)) for page in pages - linked)), (
        f"docs/README.md: {left_out}"
    )


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (dead_anchors, "[words](ARCHITECTURE.md#no-such-heading)"),
        (missing_files, "see `runtime/tm/no_such_file.hpp`"),
        (missing_files, "see `runtime/no_such_folder/`"),
        (missing_files, "see `runtime/tm/{runtime,no_such_file}.hpp`"),
        (stale_lines, "tests/planted/victims.cpp:2 (bump)"),
        (stale_lines, "victims.cpp:43 (bump)"),
        (missing_modules, "`.venv/bin/python -m loam_lab.no_such_module`"),
        (wrong_commands, "type `./loam measure`"),
        (wrong_commands, "```\n$ ./loam run intset \\\n    --no-such-option 2\n```"),
        (wrong_commands, "`./loam allocators steal hoard`"),
    ],
)
def test_the_checks_find_what_they_are_for(check: Any, text: str) -> None:
    assert list(check("x.md", text))


@pytest.mark.parametrize(
    ("check", "text"),
    [
        (dead_anchors, "[map](ARCHITECTURE.md#code-map)"),
        (missing_files, "`driver.hpp`, `attempts/driver.hpp`, `allocators/NAME.toml`, `tests/lab/test_docs.py`"),
        (stale_lines, "at tests/planted/victims.cpp:43 (bump)"),
        (wrong_commands, "```\nsudo ./loam tune --apply     changes it --really\n```"),
        (wrong_commands, "`./loam bench --allocator glibc -- python3 --version`"),
        (wrong_commands, "`./loam allocators add|build|verify`"),
    ],
)
def test_the_checks_leave_alone_what_is_right(check: Any, text: str) -> None:
    assert not list(check("x.md", text))
