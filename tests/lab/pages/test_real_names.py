"""Every name that a page reads is one that the programs, the studies or the lab have today.

The other tests of pages make up their results: a page that asks for a metric which no program has any more passes them, and
loses a table.  Here a result has the groups, levels and allocators of the study, and the metrics that its programs describe.
Only the values are made up.
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typed import typed

from loam_lab.base import paths
from loam_lab.campaign.measure import plan
from loam_lab.dev.testing import lots
from loam_lab.judging.statistics.runs import PROCESS_METRICS
from loam_lab.model import result, studies
from loam_lab.model.description import Description
from loam_lab.model.study import Group, Study
from loam_lab.presenting.pages import delegation, gc, libitm, malloc, privatization, record_sharing, stamp, tm
from loam_lab.subjects import workloads
from loam_lab.subjects.machines import HOST
from loam_lab.subjects.programs import __main__ as programs

BLOCKS = 6
THREADS_MAX = 2  # of the machine that wrote the committed pages
LAB = paths.root() / "lab" / "loam_lab"
# What a page or a check says that no program describes: a word of the standard library.
OF_THE_LAB = {"store_true"}
# What `./loam bench` itself describes.
OF_A_COMMAND = {"command"}
# Elsewhere in the lab: cell.metrics["name"], cell.values("name"), run["parameters"].get("name"), "name" in cell.metrics, ...
READ = re.compile(
    r'(?:metrics|parameters)(?:"\])?(?:\[|\.get\()"(\w+)"|\bcell\.values\("(\w+)"|"(\w+)" in \w+\.metrics\b'
)
SNAKE = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")


def known_names(descriptions: list[Description]) -> set[str]:
    """Metrics, parameters with their choices, causes of aborts: all that the programs describe, and the lab's own metrics."""
    names = {metric.name for metric in PROCESS_METRICS}
    for one in descriptions:
        names |= {cause.name for cause in (one.sync.tm.abort_causes if one.sync.tm else ())}
        parameters = list(one.sync.parameters)
        for workload in one.workloads:
            names |= {metric.name for metric in workload.metrics}
            parameters += workload.parameters
        for parameter in parameters:
            names |= {parameter.name, *map(str, parameter.choices or ())}
    return names


def literals(file: Path) -> set[str]:
    """The texts of a module in the shape of a metric's name, words_with_underscores."""
    nodes = ast.walk(ast.parse(file.read_text()))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return {text for text in texts if SNAKE.fullmatch(text)}


def strange(file: Path, known: set[str]) -> list[str]:
    return sorted(literals(file) - known - OF_THE_LAB)


READERS = [*sorted((LAB / "presenting" / "pages").rglob("*.py")), LAB / "dev" / "selfcheck" / "simulated.py"]


@pytest.mark.parametrize("file", READERS, ids=lambda file: file.stem)
def test_every_metric_that_a_page_names_is_described_by_a_program(file: Path) -> None:
    lots.build_release()
    described = [*workloads.built(), Description.model_validate(programs.describe())]
    assert strange(file, known_names(described)) == []


def read_by_name(text: str) -> set[str]:
    """The metrics and parameters that a module reads out of a cell or a record by a fixed name."""
    return {"".join(name) for name in READ.findall(text)}


def test_every_metric_and_parameter_that_the_lab_reads_by_a_fixed_name_is_described_by_a_program() -> None:
    lots.build_release()
    described = [*workloads.built(), Description.model_validate(programs.describe())]
    known = known_names(described) | OF_A_COMMAND
    read = {str(file.relative_to(LAB)): read_by_name(file.read_text()) for file in LAB.rglob("*.py")}
    assert {file: names - known for file, names in read.items() if names - known} == {}
    assert {"rss_peak_bytes", "aborts_per_attempt", "records_log2", "mapping"} <= set().union(*read.values())


def test_a_metric_that_no_program_describes_is_found(tmp_path: Path) -> None:
    lots.build_release()
    known = known_names(list(workloads.built()))
    (tmp_path / "page.py").write_text('METRIC, OLD = "pairs_per_s", "pairs_per_second"\n')
    assert strange(tmp_path / "page.py", known) == ["pairs_per_second"]


def metrics_of(one: Description, workload: str, random: np.random.Generator) -> dict[str, Any]:
    described = one.workload(workload)
    assert described is not None
    names = [metric.name for metric in (*described.metrics, *PROCESS_METRICS)]
    return {name: {"estimate": 0.0, "values": (1e6 * random.uniform(1, 2, BLOCKS)).tolist()} for name in names}


def blame_of(one: Description) -> dict[str, int] | None:
    if one.sync.tm is None:
        return None
    causes = {f"aborts_{cause.name}": 3 for cause in one.sync.tm.abort_causes}
    return {"attempts": 1000, "commits": 900, "aborts": 100, **causes}


def with_lookalikes(study: Study, group: Group) -> tuple[str, ...]:
    """The allocators of a group, and what stands for them on a machine that lacks them."""
    own = study.allocators_of(group)
    return (*own, *(study.lookalikes[name] for name in own if name in study.lookalikes))


def made(study: Study) -> dict[str, Any]:
    """A result of the study's groups that run on this host, with all that their programs describe."""
    groups = [
        group.model_copy(update={
            "threads": tuple(n for n in group.threads if n <= THREADS_MAX or group.oversubscribe),
            "allocators": with_lookalikes(study, group),
        })
        for group in study.groups
        if group.machines == (HOST,)
    ]  # fmt: skip
    own = study.model_copy(update={"groups": tuple(groups)})
    planned = plan.make(own, oversubscribe=True)
    random = np.random.default_rng(1)
    cells, syncs, causes = [], {}, {}
    for cell in planned.cells():
        one = planned.executable(cell).description
        syncs[cell.sync] = one.sync.kind
        causes.update({cause.name: cause.model_dump() for cause in (one.sync.tm.abort_causes if one.sync.tm else ())})
        factors = {
            "workload": cell.workload, "allocator": cell.allocator, "sync": cell.sync, "machine": cell.machine,
            "threads": cell.threads,
        }  # fmt: skip
        cells.append({
            "group": cell.group, "copy": 0, "factors": factors, "parameters": dict(cell.parameters),
            "metrics": metrics_of(one, cell.workload, random), "blame": blame_of(one),
        })  # fmt: skip
    return {
        "cells": cells, "groups": [{"name": g.name, "title": g.title, "role": g.role} for g in groups],
        "baseline": study.baseline, "blocks": BLOCKS, "created_utc": "2026-01-02T03:04:05Z",
        "syncs": [{"name": name, "kind": kind} for name, kind in syncs.items()], "abort_causes": list(causes.values()),
        "commands": ["made up"], "machine": {"cpu": "made up", "cores": THREADS_MAX, "kernel": "6", "rtm": "works"},
    }  # fmt: skip


def of_a_run(names: str, sync: tuple[str, ...], **levels: list[int | str]) -> dict[str, Any]:
    """A result of `./loam run` with both modes of privatization, as the pages tm and privatization read it."""
    parameters: dict[str, Any] = {**levels, "privatization": ["commit", "none"]}
    groups = tuple(
        Group(name=name, title=name, workload=name, sync=sync, threads=(1, 2), parameters=parameters)
        for name in names.split(",")
    )
    tour = studies.load(studies.registry()["tour"])
    return made(tour.model_copy(update={"groups": groups, "allocators": ("glibc",), "figures": (), "name": "run"}))


def parts(text: str) -> Iterator[str]:
    """Headings of a page, and the names of its tables' rows and columns, but for those that values choose."""
    lines = text.splitlines()
    for line, below in itertools.zip_longest(lines, lines[1:], fillvalue=""):
        if line.startswith("#"):
            yield line
        elif line.startswith("|") and not line.startswith("| ---"):
            names = line.split("|")[1:-1] if below.startswith("| ---") else [line.split("|")[1]]
            yield from (name.strip().removesuffix(" (fast)") for name in names if not name.startswith(" over "))


def lost(page: str, text: str) -> list[str]:
    """What the committed page has and the text lacks, simulated machines apart."""
    committed = (paths.root() / "docs" / "performance" / f"{page}.md").read_text()
    of_host = re.sub(r"(?ms)^## [^\n]*, sim:.*?(?=^## (?![^\n]*, sim:)|\Z)", "", committed)
    return sorted(set(parts(of_host)) - set(parts(text)))


PAGES: list[tuple[str, str, Callable[[result.Result], str]]] = [
    ("delegation", "delegation", delegation.page),
    ("gc", "gc", gc.page),
    ("libitm", "libitm", libitm.page),
    ("mallocs", "malloc", malloc.page),
    ("record-sharing", "record-sharing", record_sharing.page),
    ("stamp", "stamp", stamp.page),
]


# What compares all algorithms of locks needs them all, and CI builds one in three.
WHOLE = {"record-sharing"}


@pytest.mark.parametrize(
    ("study", "page", "text_of"),
    [pytest.param(*one, id=one[1], marks=pytest.mark.exhaustive if one[1] in WHOLE else ()) for one in PAGES],
)
def test_a_page_of_what_the_programs_describe_has_all_parts_of_the_committed_one(
    study: str, page: str, text_of: Callable[[result.Result], str]
) -> None:
    lots.build_release()
    assert lost(page, text_of(typed(made(studies.load(studies.registry()[study]))))) == []


def test_the_page_of_privatization_has_all_parts_of_the_committed_one() -> None:
    lots.build_release()
    memories = ("etl-wb", "norec")
    sets = of_a_run("intset", memories, structure=["list", "hash", "tree"], update_percent=[0, 20, 60])
    applications = of_a_run("bayes,genome,intruder,kmeans,labyrinth,ssca2,vacation,yada", memories, size=["small"])
    assert lost("privatization", privatization.page([typed(sets), typed(applications)])) == []


def test_the_page_of_transactional_memories_compares_ours_with_the_published_ones() -> None:
    lots.build_release()
    sets = of_a_run("intset", ("etl-wb", "norec", "libitm", "sequential"), structure=["list", "hash"])
    words = set(parts(tm.page(typed(sets), ["libitm"])))
    assert {"## 2 threads", "intset hash", "norec (commit)", "libitm", "## One against one"} <= words
    assert "## Safe for privatization" in words
