"""`loam list KIND`: the registries, read from the code, as tables or as JSON.

Nothing is built: what is built describes itself, and the names of the rest come from the folders.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.base.errors import unknown
from loam_lab.subjects import machines

if TYPE_CHECKING:
    from loam_lab.model.description import Description, Parameter
    from loam_lab.subjects.machines import Machine
    from loam_lab.subjects.sources import Source


def show(kind: str, *, as_json: bool) -> int:
    """Print one registry.

    kind: a key of KINDS
    raises: LoamError for another kind, with the nearest
    """
    if kind not in KINDS:
        raise unknown("list", kind, KINDS, "list")
    return KINDS[kind](as_json)


def _print_unbuilt(sources: Iterable[Source], kind: str) -> None:
    """What the folders have and no executable describes, with the command that builds it.

    kind: what they are, in the plural
    """
    from rich.markup import escape

    from loam_lab.setup import jvm

    def print_those(those: list[Source], title: str) -> None:
        if those:
            rows = [
                (f"[command]{escape(one.name)}[/command]", escape(one.summary or f"see {one.file}")) for one in those
            ]
            console.out().print(console.table(["name", "what it is"], rows, title=escape(title)))

    listed = sorted(sources, key=lambda source: source.name)
    java = [source for source in listed if source.name.startswith(jvm.PREFIX)]
    rest = [source for source in listed if source not in java]
    print_those(
        rest, f"{kind} that are not built yet: ./loam setup builds all of them, ./loam run what it is asked for"
    )
    if java:
        print_those(
            java, f"{kind} on the JVM, not set up yet: ./loam run gcbench --sync {java[0].name} sets all of them up"
        )


def _unbuilt_json(sources: Iterable[Source]) -> list[dict[str, str]]:
    return [asdict(source) for source in sorted(sources, key=lambda source: source.name)]


def _note_changes() -> None:
    """Say so where an executable may describe an older state of its source."""
    from loam_lab.setup import build

    if build.sources_changed():
        console.note(
            "sources changed since they were built: what is built is described as it was; ./loam setup builds anew"
        )


def _range(parameter: Parameter) -> str:
    """The allowed values in a few words; powers of two as such."""
    if parameter.type == "file":
        return "the path of a file"
    if parameter.labels:
        return ", ".join(
            f"{choice} ({label})" for choice, label in zip(parameter.choices, parameter.labels, strict=True)
        )
    if parameter.choices:
        return ", ".join(parameter.choices)
    low, high = parameter.min, parameter.max
    if low is None or high is None:
        return "any" if low is None and high is None else f"from {low}" if high is None else f"to {high}"
    return f"{_number(low)} to {_number(high)}"


def _number(value: int) -> str:
    power = value.bit_length() - 1
    if value > 65536 and value == 1 << power:
        return f"2^{power}"
    if value >= 65536 and value + 1 == 1 << (power + 1):
        return f"2^{power + 1}-1"
    return str(value)


def _print_parameters(title: str, parameters: Iterable[Parameter]) -> None:
    from rich.markup import escape

    rows = [
        (
            escape(p.name),
            escape(str(p.default)),
            escape(_range(p)),
            escape(f"{p.help} ({p.unit})" if p.unit not in ("", "1") else p.help),
        )
        for p in parameters
    ]
    if rows:
        console.out().print(console.table(["-p", "default", "allowed", "meaning"], rows, title=title))


def _workloads(as_json: bool) -> int:
    from loam_lab.subjects import sources, workloads

    descriptions = workloads.built()
    syncs: dict[str, list[str]] = {}
    described: dict[str, Any] = {}
    for description in descriptions:
        for workload in description.workloads:
            described.setdefault(workload.name, workload)
            syncs.setdefault(workload.name, []).append(description.sync.name)
    unbuilt = [source for name, source in sources.workloads().items() if name not in described]
    _note_changes()
    if as_json:
        console.print_json({"schema": 1, "workloads": [
            {**workload.model_dump(mode="json"), "syncs": syncs[name]} for name, workload in sorted(described.items())
        ], "not_built": _unbuilt_json(unbuilt)})  # fmt: skip
        return 0
    for name, workload in sorted(described.items()):
        console.out().print(f"[command]{name}[/command]  {workload.summary}", soft_wrap=False)
        metrics = ", ".join(f"{metric.name}" for metric in workload.metrics)
        console.out().print(f"  measures {metrics}", style="aside")
        console.out().print(f"  on {', '.join(syncs[name])}", style="aside")
        _print_parameters("", workload.parameters)
    _print_unbuilt(unbuilt, "workloads")
    return 0


def _syncs(as_json: bool) -> int:
    from loam_lab.subjects import sources, workloads

    descriptions = workloads.built()
    described = {d.sync.name for d in descriptions}
    unbuilt = [source for name, source in sources.syncs().items() if name not in described]
    _note_changes()
    if as_json:
        console.print_json({"schema": 1, "syncs": [
            {**d.sync.model_dump(mode="json"), "workloads": [w.name for w in d.workloads]} for d in descriptions
        ], "not_built": _unbuilt_json(unbuilt)})  # fmt: skip
        return 0
    if descriptions:
        _print_syncs(descriptions)
    _print_unbuilt(unbuilt, "synchronisations")
    return 0


def _print_syncs(descriptions: Iterable[Description]) -> None:
    from rich.markup import escape

    rows = [
        (f"[command]{escape(d.sync.name)}[/command]", d.sync.kind, str(d.sync.threads_max), "yes" if d.sync.blame else "no",
         escape(d.sync.summary + (f" ({d.sync.paper})" if d.sync.paper else ""))
         + f"\n[aside]guarantees: {escape(d.sync.guarantees or 'not stated')}[/aside]"
         + (f"\n[aside]needs {escape(d.sync.needs)}" + (f", and not here: {escape(d.sync.lacks)}" if d.sync.lacks else "")
            + "[/aside]" if d.sync.needs else "")
         + (f"\n[aside]here: {escape(d.sync.caution)}[/aside]" if d.sync.caution else ""))
        for d in descriptions
    ]  # fmt: skip
    console.out().print(console.table(["sync", "kind", "threads", "blame", "what it is"], rows, numeric=["threads"]))
    shared: dict[tuple[Parameter, ...], list[str]] = {}
    for d in descriptions:
        if d.sync.parameters:
            shared.setdefault(d.sync.parameters, []).append(d.sync.name)
    for parameters, names in shared.items():
        _print_parameters(f"parameters of {', '.join(names)}", parameters)


def _machines(as_json: bool) -> int:
    known = [(machine, machine.facts()) for machine in machines.registry().values()]
    if as_json:
        console.print_json({"schema": 1, "machines": [
            {"name": machine.name, "threads": machine.threads, "deterministic": machine.deterministic,
             "command": list(machine.prefix), **facts, "caches": [asdict(cache) for cache in machine.caches]}
            for machine, facts in known
        ]})  # fmt: skip
        return 0
    from rich.markup import escape

    rows = [
        (f"[command]{escape(machine.name)}[/command]", str(machine.threads), "yes" if machine.deterministic else "no",
         escape(_machine_words(machine, facts)) + f"\n[aside]fingerprint {facts.get('fingerprint', 'unknown')}[/aside]")
        for machine, facts in known
    ]  # fmt: skip
    columns = ["machine", "threads", "deterministic", "what it is"]
    console.out().print(console.table(columns, rows, numeric=["threads"]))
    return 0


def _machine_words(machine: Machine, facts: dict[str, Any]) -> str:
    """Processor, caches, memory, and how a program is started."""
    parts = [str(facts.get("cpu") or "")]
    parts += [cache.words() for cache in machine.caches if cache.kind != "instruction"]
    parts += [f"{facts['memory_bytes'] / 2**30:.0f} GiB"] if facts.get("memory_bytes") else []
    parts += [f"RTM {facts['rtm']}"] if facts.get("rtm") else []
    started = " ".join(machine.prefix)
    return ", ".join(part for part in parts if part) + (f"; programs start as {started} ..." if started else "")


def _studies(as_json: bool) -> int:
    from loam_lab.commands.run import commands

    return commands.study_list(as_json=as_json)


def _allocators(as_json: bool) -> int:
    from loam_lab.subjects.allocators import commands

    return commands.listing(as_json=as_json)


def _claims(as_json: bool) -> int:
    from loam_lab.judging.claims import listing

    return listing.show(as_json=as_json)


KINDS: dict[str, Callable[[bool], int]] = {
    "allocators": _allocators,
    "workloads": _workloads,
    "syncs": _syncs,
    "machines": _machines,
    "studies": _studies,
    "claims": _claims,
}
