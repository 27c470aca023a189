"""docs/performance/tm.md: every synchronisation over the same blocks, as one Markdown page.

    python -m loam_lab.report.synchronisations RESULT [--page FILE] [--published NAME,...] [--same OURS=THEIRS,...]

RESULT is the folder of a `run` or study whose groups have several synchronisations, as

    ./loam run intset --sync all -p structure=list,hash,tree -p update_percent=0,20,60 --threads 1,2 --allocator glibc

`published` names those that are not Loam's own: the best of the others is set against the best of them, case by case, and
the one of ours with the best geometric mean against the one of theirs.  `same` names pairs of one algorithm;
sequential=THEIRS shows the limit, what no transactional memory can exceed.
Ratios are of paired blocks, with signed-rank intervals of 95 %.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from loam_lab.report import paired
from loam_lab.report.paired import Case

METRIC = "ops_per_s"
# Yardsticks of another kind: they take no part in what is the best transactional memory.
NO_TM = ("sequential", "plain", "global-lock")
# Where a peer lies on one machine is of no use on another.
_PATH = re.compile(r"(?<=[\s,])/[^\s,]+")


def cases(result: Mapping[str, Any]) -> tuple[list[Case], list[str]]:
    """The cases of a Result under its baseline allocator, and the synchronisations in the order of their appearance."""
    found: dict[tuple[str, int], Case] = {}
    syncs: dict[str, None] = {}
    relevant = [cell for cell in result["cells"] if cell["copy"] == 0 and METRIC in cell["metrics"]]
    relevant = [cell for cell in relevant if cell["factors"]["allocator"] == result["baseline"]]
    varied = {
        name
        for name in {n for cell in relevant for n in cell["parameters"]}
        if len({str(cell["parameters"].get(name)) for cell in relevant if name in cell["parameters"]}) > 1
    }
    for cell in relevant:
        factors = cell["factors"]
        own = {n: v for n, v in cell["parameters"].items() if n in varied}
        mapping = own.pop("mapping", "")
        sync = factors["sync"] + (f" ({mapping})" if mapping else "")
        words = [factors["workload"], *(_word(name, value) for name, value in own.items())]
        key = " ".join(words), int(factors["threads"])
        syncs[sync] = None
        found.setdefault(key, Case(*key)).values[sync] = cell["metrics"][METRIC]["values"]
    return sorted(found.values(), key=lambda case: case.threads), list(syncs)


def _word(name: str, value: object) -> str:
    return f"{value} %" if name.endswith("_percent") else str(value)


def page(result: Mapping[str, Any], published: Sequence[str] = (), same: Sequence[tuple[str, str]] = ()) -> str:
    """The page.

    published: synchronisations of others; same: pairs of one algorithm, ours first
    raises: ValueError if the result compares no synchronisations
    """
    found, syncs = cases(result)
    if len(syncs) < 2:
        raise ValueError("this result has one synchronisation; compare several, as with --sync all")
    base = next((name for name in syncs if name.startswith("etl-wb")), syncs[0])
    machine = result["machine"]
    lines = [
        "# Speed of the transactional memory", "",
        "Written by `python -m loam_lab.report.synchronisations` from one result, whose runs were interleaved in paired",
        f"blocks: {result['blocks']} of them, allocator {result['baseline']}, {machine['cpu']}, {machine['cores']} cores,",
        f"kernel {machine['kernel']}, {result['created_utc'][:10]}. Ratios to {base} with their 95 % intervals; above 1 is",
        "faster. **Bold**: the fastest transactional memory of a column.",
        "", "```", _PATH.sub("PATH", result["commands"][0]), "```", "",
    ]  # fmt: skip
    for threads in sorted({case.threads for case in found}):
        own = [case for case in found if case.threads == threads]
        shown = [name for name in syncs if any(name in case.values for case in own)]
        lines += [
            f"## {threads} thread{'s' * (threads > 1)}",
            "",
            *paired.table(own, shown, base, [name for name in shown if name.split(" (")[0] not in NO_TM]),
            "",
        ]
        if published:
            lines += _against(own, shown, published)
    if published:
        lines += _overall(found, syncs, published, same)
    return "\n".join(lines).rstrip("\n") + "\n"


def _against(own: Sequence[Case], shown: Sequence[str], published: Sequence[str]) -> list[str]:
    """The best of ours against the best of the published ones, per case and over all."""
    theirs = [name for name in shown if name in published]
    ours = [name for name in shown if name not in published and name.split(" (")[0] not in NO_TM]
    if not theirs or not ours:
        return []
    lines = [
        "Best of ours over the best published one:",
        "",
        "| case | ours | published | ratio |",
        "| --- | --- | --- | ---: |",
    ]
    for case in own:
        best, rival = case.fastest(ours), case.fastest(theirs)
        if best is not None and rival is not None:
            lines.append(f"| {case.name} | {best} | {rival} | {paired.text_of(case.ratio(best, rival))} |")
    return [*lines, ""]


def _overall(
    found: Sequence[Case], syncs: Sequence[str], published: Sequence[str], same: Sequence[tuple[str, str]]
) -> list[str]:
    """One synchronisation against one other, as geometric means over the cases of all thread counts."""
    groups = {"all": list(found)}
    for name in dict.fromkeys(case.name.split()[1] for case in found if len(case.name.split()) > 1):
        groups[name] = [case for case in found if name in case.name.split()]
    if {"hash", "tree"} <= set(groups):  # what instructions bound, the list being the cache's
        groups["hash and tree"] = [*groups["hash"], *groups["tree"]]
    ours = [name for name in syncs if name not in published and name.split(" (")[0] not in NO_TM]
    best, rival = paired.leader(found, ours), paired.leader(found, [name for name in syncs if name in published])
    pairs = [(name, theirs) for mine, theirs in same for name in syncs if name.split(" (")[0] == mine]
    if best is not None and rival is not None:
        pairs.insert(0, (best, rival))
    rows = [
        [
            _named(found, mine, theirs),
            *(paired.text_of(paired.mean_ratio(own, mine, theirs)) for own in groups.values()),
        ]
        for mine, theirs in dict.fromkeys(pairs)
        if theirs in syncs
    ]
    if not rows:
        return []
    return [
        "## One against one", "",
        "Geometric means over the cases above. First the one of ours with the best mean over the published one with the best",
        "mean, then pairs of one algorithm.", "",
        "| | " + " | ".join(groups) + " |", "| --- |" + " ---: |" * len(groups),
        *("| " + " | ".join(row) + " |" for row in rows), "",
    ]  # fmt: skip


def _named(found: Sequence[Case], mine: str, theirs: str) -> str:
    """The pair, with its thread count where it was measured at one alone, as sequential code is."""
    threads = {case.threads for case in found if case.logs(mine, theirs) is not None}
    some = len(threads) == 1 and threads != {case.threads for case in found}
    return f"{mine} over {theirs}" + (f", {min(threads)} thread{'s' * (threads != {1})}" if some else "")


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page of a result."""
    parser = paired.page_parser("loam_lab.report.synchronisations", __doc__, "tm.md")
    parser.add_argument("--published", default="libitm", help="synchronisations of others, separated by commas")
    parser.add_argument("--same", default="", help="pairs of one algorithm, ours first: etl-wb=tinystm,...")
    options = parser.parse_args(arguments)
    same = [(ours, theirs) for ours, _, theirs in (pair.partition("=") for pair in options.same.split(",")) if theirs]
    published = options.published.split(",")
    return paired.write_page(options.result, options.page, lambda result: page(result, published, same))


if __name__ == "__main__":
    sys.exit(main())
