"""What may follow on a command line where a name belongs: allocators, workloads, synchronisations, studies, machines.

A shell asks at each TAB. Names come from folders; nothing is built or started. Whatever is wrong there, the shell gets
no names instead of a message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

Complete = Callable[[str], list[str]]


def _names(registry: Callable[[], Iterable[str]], *, several: bool = True) -> Complete:
    """Completes the last of names with commas between them; several: whether there may be more than one."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        given = before.split(",")
        try:
            return [f"{before}{comma}{name}" for name in registry() if name.startswith(last) and name not in given]
        except Exception:  # of a damaged file, say, of which other commands tell
            return []

    return complete


def _allocators() -> list[str]:
    from loam_lab.subjects.allocators import registry

    return registry.all_names()


def _workloads() -> Iterable[str]:
    from loam_lab.subjects import sources

    return sorted(sources.workloads())


def _syncs() -> Iterable[str]:
    from loam_lab.subjects import sources

    return sorted([*sources.syncs(), "all"])


def _machines() -> Iterable[str]:
    from loam_lab.subjects import machines

    return machines.registry()


def _studies() -> Iterable[str]:
    from loam_lab.model import studies

    return studies.registry()


def _kinds() -> Iterable[str]:
    from loam_lab.cli import listing

    return listing.KINDS


allocators, workloads, syncs, machines = (_names(one) for one in (_allocators, _workloads, _syncs, _machines))
allocator, workload, sync, machine, study, kind = (
    _names(one, several=False) for one in (_allocators, _workloads, _syncs, _machines, _studies, _kinds)
)
