"""`loam doctor`: all checks, the worst first. Looks only; changes nothing and builds nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict

from loam_lab.base import console, paths
from loam_lab.base.errors import unknown
from loam_lab.commands.doctor import activity, counters, fitness, memory, processor, shell, siblings, tools, tuned
from loam_lab.commands.doctor.finding import SEVERITIES, Finding, View
from loam_lab.subjects import machine

Check = Callable[[View], Iterator[Finding]]

CHECKS: dict[str, tuple[Check, ...]] = {
    "noise": (
        processor.processor, siblings.check, processor.frequency, processor.hypervisor, processor.clock, processor.microcode,
        activity.load, activity.quota, activity.scheduler, tuned.check,
    ),
    "memory": (
        memory.huge_pages, memory.damon, memory.swap, memory.overcommit, memory.nodes, memory.merging, memory.available,
        memory.layout, shell.limits,
    ),
    "htm": (counters.transactions,),
    "counters": (counters.counting, counters.permissions, activity.scheduler),
    "allocators": (tools.allocators, shell.variables),
    "build": (tools.places, tools.compilers, tools.built, tools.jdks),
    "tests": (tools.tests,),
}  # fmt: skip

_MARKS = {
    "blocks": ("✗", "bad", "Blocks"),
    "changes results": ("!", "doubt", "Changes results"),
    "costs precision": ("~", "doubt", "Costs precision"),
    "fine": ("✓", "good", "Fine"),
}
# Shorter than that, a scheduler's tick of somebody else counts as a busy process.
_WINDOW_S, _WINDOW_QUICK_S = 0.5, 0.2


def examine(subject: str | None = None, view: View | None = None) -> list[Finding]:
    """Every finding, or those of one subject; the worst first, else in the order of CHECKS.

    raises: LoamError for an unknown subject, with the nearest
    """
    if subject is not None and subject not in CHECKS:
        raise unknown("--for", subject, CHECKS, "subject of doctor")
    view = view or View(results=paths.results_root())
    watched = subject in (None, "noise")
    before, began = activity.snapshot(view.tree) if watched else None, time.monotonic()
    checks = dict.fromkeys(check for name, group in CHECKS.items() if subject in (None, name) for check in group)
    # The siblings' measurement would show as pressure: it comes last.
    findings = [finding for check in checks if check is not siblings.check for finding in check(view)]
    if before is not None:
        # The checks themselves took part of the window; the processes that they started are not counted.
        time.sleep(max(0.0, (_WINDOW_QUICK_S if view.quick else _WINDOW_S) - (time.monotonic() - began)))
        findings += activity.between(view, before, activity.snapshot(view.tree))
    if siblings.check in checks:
        findings += siblings.check(view)
    order = {name: rank for rank, name in enumerate(CHECKS)}
    findings.sort(key=lambda finding: (SEVERITIES.index(finding.severity), order[finding.subject]))
    return [finding for finding in findings if subject in (None, finding.subject)]


def doctor(subject: str | None, *, quick: bool, as_json: bool) -> int:
    """Print the findings; 1 if something does not work at all, else 0."""
    view = View(quick=quick, results=paths.results_root())
    findings = examine(subject, view)
    fit = fitness.newest(view.results)
    failed = any(finding.severity == "blocks" for finding in findings)
    if as_json:
        console.print_json(
            {
                "schema": 1,
                "machine": machine.fingerprint(),
                "fitness": None if fit is None else asdict(fit),
                "verdict": fitness.sentence(fit),
                "findings": [asdict(finding) for finding in findings],
            }
        )
        return int(failed)
    out = console.out()
    out.print(fitness.sentence(fit), style="head" if fit else "doubt")
    _print(findings)
    counts = {severity: sum(finding.severity == severity for finding in findings) for severity in SEVERITIES}
    summary = f"{len(findings)} checks: " + ", ".join(
        f"{counts[severity]} {text}"
        for severity, text in (
            ("blocks", "block work"), ("changes results", "change results"), ("costs precision", "cost precision"),
            ("fine", "fine"),
        )
    )  # fmt: skip
    worst = next((severity for severity in SEVERITIES if counts[severity]), "fine")
    out.print(f"\n{summary}", style=_MARKS[worst][1])
    return int(failed)


def _print(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    width = max((len(finding.name) for finding in findings), default=0)
    for severity in SEVERITIES:
        chosen = [finding for finding in findings if finding.severity == severity]
        if not chosen:
            continue
        mark, style, head = _MARKS[severity]
        console.out().print(f"\n{head}", style="head")
        grid = Table.grid(padding=(0, 1))
        grid.add_column(no_wrap=True)
        grid.add_column(no_wrap=True, min_width=width)
        grid.add_column(overflow="fold")
        for finding in chosen:
            text = Text(finding.fact)
            for extra in (finding.consequence, finding.next_step):
                if extra:
                    text.append(f"\n{extra}", style="aside")
            grid.add_row(Text(mark, style=style), Text(finding.name, style="head"), text)
        console.out().print(grid)
