"""loam explain: make the run, group what it recorded, predict what placement would do elsewhere, say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.commands.explain import evidence as evidences
from loam_lab.commands.explain import grouping, pairs, placement, run, shared_lines, story, transfers
from loam_lab.model.records import records_mapping, values
from loam_lab.subjects import machines, symbols

if TYPE_CHECKING:
    from loam_lab.campaign.measure.instruments import Instruments
    from loam_lab.commands.request import Request

DEFAULT_ALLOCATOR = "glibc"
# Aborts are explained by the records that addresses share, which the library's default has only where many threads meet.
EXPLAINED = ("etl-wb", "none")
PAIRS_SHOWN = 8
ABORTED = pairs.Words(
    share="aborts", one="the access that lost", other="the write that won", title="Lines that abort each other most"
)


def explain(
    workload: str, request: Request, *, every: int = 1, chains: bool = False, instruments: Instruments | None = None
) -> int:
    """Explain one run: its aborts, or where it reports none the cache lines that its threads share.

    request: of one allocator, one synchronisation, one thread count, one machine, or none for the usual one
    every: record every n-th abort of a thread; chains: show each line's chain of inlined callers
    instruments: None for those of this checkout; returns: 0
    raises: LoamError
    """
    from loam_lab.campaign.measure import builds
    from loam_lab.setup import build
    from loam_lab.subjects import workloads
    from loam_lab.subjects.allocators import building, registry

    selection, as_json = request.selection, request.output.as_json
    allocator, sync = next(iter(selection.allocators), DEFAULT_ALLOCATOR), next(iter(selection.syncs), None)
    building.ensure([allocator])
    preset = machines.find(next(iter(selection.machines), machines.HOST)).preset or "release"
    if instruments is None:
        registry.load(allocator)  # what cannot be used is said before anything is built
        build.ensure_built(["probe"])
        if sync is None:
            sync = builds.default_sync(workload, preset, EXPLAINED)
        elif "/" not in sync:
            build.ensure_built([sync], preset)
        building.ensure_own([allocator], preset)
    sync = sync or EXPLAINED[0]
    executable = workloads.resolve_syncs([sync], preset)[0]
    asked = run.check(workload, request, allocator=allocator, executable=executable, every=every)
    if not asked.blames:
        return shared_lines.explain(asked, as_json=as_json, chains=chains, instruments=instruments)
    performed = run.perform(asked, instruments)
    explained = explanation(asked, performed.records, performed.statistics)
    if as_json:
        console.print_json(explained)
    else:
        show(explained, chains=chains)
    return 0


def explanation(asked: run.Asked, records: Sequence[Mapping[str, Any]], statistics: str = "") -> dict[str, Any]:
    """All that the records explain, as one document (`loam explain --json`).

    statistics: the simulator's, "" where nothing was simulated
    """
    begin = next(line for line in records if line["kind"] == "begin")
    lines_moved: list[transfers.Moved] = []
    try:
        evidence = evidences.read(records)
        if statistics:
            lines_moved, more = transfers.read(statistics, max(evidence.sites, default=0) + 1)
            evidence.sites.update(more)
    except (KeyError, TypeError, ValueError) as problem:
        raise LoamError(asked.workload, None, f"a record of its conflicts does not fit the schema: {problem!r}",
                        "build the executable and this lab from one revision", exit_code=1) from None  # fmt: skip
    counts = _counts(records)
    aborts = sum(counts["causes"].values())
    shares = {cause: count / aborts for cause, count in counts["causes"].items() if count}
    places = symbols.places(evidence.sites.values(), asked.executable.subject.program, paths.root())
    mapping = "shadow" if records_mapping(begin).startswith("shadow") else records_mapping(begin)
    meanings = {cause: _meaning(cause, asked) for cause in shares}
    configured = int(begin["parameters"].get("shift", placement.SHADOW_SHIFT))
    shift = evidence.conflicts[-1].shift if evidence.conflicts else configured
    described = {
        "workload": asked.workload, "allocator": asked.allocator, "sync": begin["sync"], "threads": asked.threads,
        "parameters": begin["parameters"], "seed": asked.seed, "mapping": mapping, "shift": shift,
    }  # fmt: skip
    predictions = placement.predict(
        evidence.footprints, int(begin["parameters"].get("records_log2", 20)),
        shift if mapping == "hash" else placement.HASH_SHIFT,
    )  # fmt: skip
    blocks, lines = grouping.by_blocks(evidence.conflicts, places), grouping.by_lines(evidence.conflicts, places)
    words = _nothing(counts, asked)
    if aborts:
        words = [*story.headline(shares, blocks, predictions, described, meanings), *story.few(len(evidence.conflicts))]
    return {
        "schema": 1, "run": described, **counts, "aborts": aborts, "shares": shares, "meanings": meanings,
        "words": words,
        "sampled": {"every": asked.every, "conflicts": len(evidence.conflicts), "transactions": len(evidence.footprints)},
        "blocks": [pairs.blocks_json(group) for group in blocks],
        "lines": [pairs.lines_json(group) for group in lines],
        "moved": transfers.as_json(lines_moved, evidence.conflicts, places),
        "predictions": [
            {"mapping": p.mapping, "shift": p.shift, "conflicting": p.conflicting, "causes": p.causes} for p in predictions
        ],
    }  # fmt: skip


def _counts(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Commits, attempts and causes of the timed part, which are counted and not sampled."""
    sums: dict[str, int] = {}
    for line in records:
        if line["kind"] == "iteration":
            for name, value in values(line).items():
                if name in ("commits", "attempts") or (name.startswith("aborts_") and name != "aborts_per_attempt"):
                    sums[name] = sums.get(name, 0) + int(value)
    causes = {name.removeprefix("aborts_"): count for name, count in sums.items() if name.startswith("aborts_")}
    return {"commits": sums.get("commits", 0), "attempts": sums.get("attempts", 0), "causes": causes}


def _meaning(cause: str, asked: run.Asked) -> str:
    """What a cause means, in the words of the executable."""
    memory = asked.executable.description.sync.tm
    known = {described.name: described.meaning for described in (memory.abort_causes if memory else ())}
    return known.get(cause) or cause.replace("_", " ")


def _nothing(counts: Mapping[str, Any], asked: run.Asked) -> list[str]:
    return [
        f"No transaction aborted in {counts['commits']} commits: there is nothing to explain.",
        "To see conflicts: more updates (-p update_percent=60), fewer elements, a longer run (-p duration_ms=5000), or "
        f"more threads than {asked.threads}.",
    ]


def show(explained: Mapping[str, Any], *, chains: bool = False) -> None:
    """Print an explanation: words first, then causes, pairs of blocks, pairs of lines, predictions."""
    out, run_ = console.out(), explained["run"]
    mapping = story.naming(run_["mapping"], run_["shift"]).run
    out.print(
        f"{run_['workload']} under {run_['allocator']}, {run_['sync']}, {run_['threads']} threads, {mapping}: "
        f"{explained['aborts']} abort{'' if explained['aborts'] == 1 else 's'} in {explained['attempts']} attempts",
        markup=False, soft_wrap=True,
    )  # fmt: skip
    out.print()
    for sentence in explained["words"]:
        out.print(sentence, markup=False, style="head" if sentence == explained["words"][0] else None, soft_wrap=True)
    transfers.show(explained["moved"])
    if not explained["aborts"]:
        return
    out.print()
    causes = sorted(explained["shares"].items(), key=lambda item: -item[1])
    rows = [[story.percent(share), cause, explained["meanings"][cause]] for cause, share in causes]
    out.print(console.table(["aborts", "cause", "meaning"], rows, numeric=["aborts"]))
    rows = [[story.percent(group["share"]), group["words"]] for group in explained["blocks"][:PAIRS_SHOWN]]
    title = f"Blocks that abort each other most (a sample of {explained['sampled']['conflicts']})"
    out.print(console.table(["aborts", "blocks"], rows, numeric=["aborts"], title=title))
    pairs.show_lines(explained["lines"][:PAIRS_SHOWN], ABORTED, chains=chains)
    _show_predictions(explained)


def _show_predictions(explained: Mapping[str, Any]) -> None:
    if not explained["predictions"]:
        console.out().print("No prediction: no two threads committed transactions of which one wrote.")
        return
    rows = []
    for p in explained["predictions"]:
        name = story.naming(p["mapping"], p["shift"]).row
        here = (p["mapping"], p["shift"]) == (explained["run"]["mapping"], explained["run"]["shift"])
        parts = [story.percent(p["causes"][cause]) if p["conflicting"] else "-" for cause in placement.CAUSES]
        rows.append([f"[head]{name} (this run)[/head]" if here else name, story.percent(p["conflicting"]), *parts])
    heads = ["mapping", "pairs", "word", "block", "other block", "other stripe", "unknown"]
    title = (
        "Predicted from placement: pairs of transactions that conflict, and why "
        f"({explained['sampled']['transactions']} sampled)"
    )
    console.out().print(console.table(heads, rows, numeric=heads[1:], title=title))
