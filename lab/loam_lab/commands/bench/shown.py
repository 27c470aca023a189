"""What `bench` prints of its Result: the recommendation, what to take for speed, memory and both, and tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.commands.bench import recommend
from loam_lab.commands.run import tables

if TYPE_CHECKING:
    from rich.text import Text

USED = (
    ("user", "user_s"), ("system", "system_s"), ("peak memory", "rss_peak_bytes"), ("minor faults", "faults_minor"),
    ("major faults", "faults_major"),
)  # fmt: skip
MOVED = (
    ("waited", "switches_voluntary"), ("preempted", "switches_involuntary"), ("moved", "migrations"),
    ("RSS after", "rss_after_bytes"), ("PSS after", "pss_after_bytes"), ("server CPU", "server_cpu_s"),
)  # fmt: skip
LATENCIES = (("p50", "latency_p50_s"), ("p95", "latency_p95_s"), ("p99", "latency_p99_s"), ("max", "latency_max_s"))


def show(result: Mapping[str, Any]) -> None:
    """Print recommendation, tables and failures on standard output."""
    from rich.text import Text

    out = console.out()
    recommendation = result["recommendation"]
    out.print(Text(recommendation["text"], style="head"), soft_wrap=True)
    if recommendation["allocator"] != result["baseline"]:
        out.print(Text(f"  {recommendation['command']}", style="command"), soft_wrap=True)
    for choice in recommendation.get("choices", ()):
        out.print(Text(f"for {choice['for']}: {choice['text']}"), soft_wrap=True)
    for place, line in recommendation.get("lines", {}).items():
        if place != "shell":
            out.print(Text(f"{place}:", style="aside"))
            out.print(Text("  " + line.replace("\n", "\n  "), style="command"), soft_wrap=True)
    for text, cells in _families(result).items():
        _of_one(result, text, cells)
    if recommend.decides(result) == "processor_s":
        out.print(_by_processor(result))
    tables.failures(result)


def _families(result: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The cells by command; of one alone by nothing."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for cell in result["cells"]:
        found.setdefault(str(cell.get("parameters", {}).get("command", "")), []).append(cell)
    return found if len(found) > 1 else {"": list(result["cells"])}


def _of_one(result: Mapping[str, Any], command: str, cells: list[Mapping[str, Any]]) -> None:
    """The tables of one command."""
    from rich.text import Text

    out = console.out()
    proofs = {allocator["name"]: allocator["proof"] for allocator in result["allocators"]}
    primary = next(iter(result["primary_metrics"].values()), "wall_s")
    # Several tables, because one would not fit 80 columns.
    columns = [
        "allocator",
        "wall" if primary == "wall_s" else primary,
        f"of {result['baseline']}",
        "interval",
        "in use",
        "verdict",
    ]
    rows: list[list[str | Text]] = [
        [
            Text(tables.name_of(cell)),
            tables.quantity(cell["metrics"].get(primary), "estimate"),
            tables.number(cell["ratio_to_baseline"], "estimate"),
            tables.span(cell["ratio_to_baseline"], 3),
            Text(proofs.get(cell["factors"]["allocator"], "")),
            tables.verdict_of(cell),
        ]
        for cell in cells
    ]
    what = "Wall time" if primary == "wall_s" else "What the load printed"
    title = f"{what}, medians of {result['blocks']} blocks; ratios within blocks, 95 % intervals"
    out.print(console.table(columns, rows, numeric=columns[1:4], title=f"{command}\n{title}" if command else title))
    _metrics(cells, USED, "What each used (medians)")
    _metrics(cells, MOVED, "How often a thread waited, was preempted or was moved; memory after the load")
    _metrics(cells, LATENCIES, "Latencies that the load printed")


def _metrics(cells: list[Mapping[str, Any]], wanted: tuple[tuple[str, str], ...], title: str) -> None:
    """A table of those metrics that any cell has; none where none has one."""
    from rich.text import Text

    known = [(head, name) for head, name in wanted if any(cell["metrics"].get(name) for cell in cells)]
    if known:
        columns = ["allocator", *(head for head, _ in known)]
        rows: list[list[str | Text]] = [
            [Text(tables.name_of(cell)), *(tables.quantity(cell["metrics"].get(name), "estimate") for _, name in known)]
            for cell in cells
        ]
        console.out().print(console.table(columns, rows, numeric=columns[1:], title=title))


def _by_processor(result: Mapping[str, Any]) -> Any:
    """The table of the time that decides where the command waited."""
    from rich.text import Text

    columns = ["allocator", "user + system", f"of {result['baseline']}", "interval", "verdict"]
    rows: list[list[str | Text]] = [
        [
            Text(tables.name_of(cell)),
            tables.quantity(cell["metrics"].get("processor_s"), "estimate"),
            tables.number(cell["processor_ratio"], "estimate"),
            tables.span(cell["processor_ratio"], 3),
            tables.verdict_of(
                cell["processor_ratio"] or {"verdict": cell["verdict"] if cell["verdict"] == "baseline" else ""}
            ),
        ]
        for cell in result["cells"]
        if cell["copy"] == 0
    ]
    title = "Processor time, which decides: the command waited for a processor"
    return console.table(columns, rows, numeric=columns[1:4], title=title)
