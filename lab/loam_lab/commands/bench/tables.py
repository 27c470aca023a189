"""What `bench` prints of its Result: the recommendation, what to take for speed, memory and both, and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.commands.bench import recommend
from loam_lab.commands.bench.footprint import GROUP
from loam_lab.commands.run import tables
from loam_lab.model import words
from loam_lab.model.result import Cell, Recommendation, Result

if TYPE_CHECKING:
    from rich.text import Text

USED = (
    ("user", "user_s"), ("system", "system_s"), ("peak memory", "rss_peak_bytes"), ("minor faults", "faults_minor"),
    ("major faults", "faults_major"),
)  # fmt: skip
MOVED = (
    ("waited", "switches_voluntary"), ("preempted", "switches_involuntary"), ("moved", "migrations"),
    ("RSS after", "rss_after_bytes"), ("PSS after", "pss_after_bytes"), ("group peak", GROUP), ("server CPU", "server_cpu_s"),
)  # fmt: skip
LATENCIES = (("p50", "latency_p50_s"), ("p95", "latency_p95_s"), ("p99", "latency_p99_s"), ("max", "latency_max_s"))


def show(result: Result) -> None:
    """Print recommendation, tables and failures on standard output."""
    from rich.text import Text

    out = console.out()
    recommendation = result.recommendation or Recommendation()
    _advice(recommendation, result.baseline)
    for place, line in (recommendation.lines or {}).items():
        if place != "shell":
            out.print(Text(f"{place}:", style="aside"))
            out.print(Text("  " + line.replace("\n", "\n  "), style="command"), soft_wrap=True)
    for text, cells in _families(result).items():
        _of_one(result, text, cells)
    if recommend.decides(result) == "processor_s":
        out.print(_by_processor(result))
    tables.failures(result)


def _advice(recommendation: Recommendation, baseline: str) -> None:
    """The recommendation and the choices, each with its line to paste, which is printed once."""
    from rich.text import Text

    out = console.out()
    out.print(Text(recommendation.text, style="head"), soft_wrap=True)
    if recommendation.allocator not in ("", baseline):
        out.print(Text(f"  {recommendation.command}", style="command"), soft_wrap=True)
    printed: set[str] = set()
    for choice in recommendation.choices or ():
        out.print(Text(f"for {choice.purpose}: {choice.text}"), soft_wrap=True)
        if choice.command and choice.command not in printed:
            printed.add(choice.command)
            out.print(Text(f"  {choice.command}", style="command"), soft_wrap=True)


def _families(result: Result) -> dict[str, list[Cell]]:
    """The cells by command; of one alone by nothing."""
    by_command: dict[str, list[Cell]] = {}
    for cell in result.cells:
        by_command.setdefault(str(cell.parameters.get("command", "")), []).append(cell)
    return by_command if len(by_command) > 1 else {"": list(result.cells)}


def _of_one(result: Result, command: str, cells: list[Cell]) -> None:
    """The tables of one command."""
    from rich.text import Text

    out = console.out()
    proofs = {allocator.name: allocator.proof for allocator in result.allocators}
    primary = next(iter(result.primary_metrics.values()), "wall_s")
    # Several tables, because one would not fit 80 columns.
    columns = [
        "allocator",
        "wall" if primary == "wall_s" else primary,
        f"of {result.baseline}",
        "interval",
        "in use",
        "verdict",
    ]
    rows: list[list[str | Text]] = [
        [
            Text(tables.name_of(cell)),
            tables.estimate(cell.metrics.get(primary)),
            tables.number(cell.ratio_to_baseline),
            tables.span(cell.ratio_to_baseline),
            Text(proofs.get(cell.allocator, "")),
            tables.verdict_of(cell.verdict, cell.rough),
        ]
        for cell in cells
    ]
    what = "Wall time" if primary == "wall_s" else "What the load printed"
    title = f"{what}, medians of {words.blocks(result.blocks)}; ratios within blocks, 95 % intervals"
    out.print(console.table(columns, rows, numeric=columns[1:4], title=f"{command}\n{title}" if command else title))
    _metrics(cells, USED, "What each used (medians)")
    _metrics(cells, MOVED, "How often a thread waited, was preempted or was moved; memory after the load")
    _metrics(cells, LATENCIES, "Latencies that the load printed")


def _metrics(cells: list[Cell], wanted: tuple[tuple[str, str], ...], title: str) -> None:
    """A table of those metrics that any cell has; none where none has one."""
    from rich.text import Text

    known = [(head, name) for head, name in wanted if any(cell.metrics.get(name) for cell in cells)]
    if known:
        columns = ["allocator", *(head for head, _ in known)]
        rows: list[list[str | Text]] = [
            [Text(tables.name_of(cell)), *(tables.estimate(cell.metrics.get(name)) for _, name in known)]
            for cell in cells
        ]
        console.out().print(console.table(columns, rows, numeric=columns[1:], title=title))


def _by_processor(result: Result) -> Any:
    """The table of the time that decides where the command waited."""
    from rich.text import Text

    columns = ["allocator", "user + system", f"of {result.baseline}", "interval", "verdict"]
    rows: list[list[str | Text]] = [
        [
            Text(tables.name_of(cell)),
            tables.estimate(cell.metrics.get("processor_s")),
            tables.number(cell.processor_ratio),
            tables.span(cell.processor_ratio),
            _by_time(cell),
        ]
        for cell in result.cells
        if cell.copy == 0
    ]
    title = "Processor time, which decides, because of the waiting for a processor"
    return console.table(columns, rows, numeric=columns[1:4], title=title)


def _by_time(cell: Cell) -> Text:
    """The verdict by processor time."""
    if (judged := cell.processor_ratio) is not None:
        return tables.verdict_of(judged.verdict, judged.rough)
    return tables.verdict_of("baseline" if cell.verdict == "baseline" else "")
