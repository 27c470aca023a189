"""What may follow on a command line where a name belongs: an allocator, a workload, a study, a limit, a check and others.

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


def _added() -> Iterable[str]:
    from loam_lab.subjects.allocators import registry

    return sorted(file.stem for file in registry.user_folder().glob("*.toml"))


def _built() -> Iterable[str]:
    from loam_lab.subjects.allocators import registry

    return [name for name, one in registry.definitions().items() if one.recipe is not None]


def _settings() -> Iterable[str]:
    from loam_lab.subjects.allocators import registry

    return sorted({name for one in registry.definitions().values() for name in one.settings})


def _algorithms() -> Iterable[str]:
    from loam_lab.subjects import itm

    return itm.algorithms()


def _collectors() -> Iterable[str]:
    from loam_lab.subjects.jvm.__main__ import COLLECTORS

    return COLLECTORS


def _engines() -> Iterable[str]:
    from loam_lab.campaign.fleet import selection

    return selection.ENGINES


def _tuned() -> Iterable[str]:
    from loam_lab.setup.tune import settings

    return settings.names()


def _checked() -> Iterable[str]:
    from loam_lab.commands.doctor import commands

    return commands.CHECKS


def _limits() -> Iterable[str]:
    from loam_lab.commands.bench import cgroups, job

    return [f"{name}=" for name in (*sorted(job.resources()), *cgroups.USUAL)]


def _signals() -> Iterable[str]:
    import signal as signals

    return sorted(one.name.removeprefix("SIG") for one in signals.Signals)


def _pages() -> Iterable[str]:
    from loam_lab.base import subcommands

    return subcommands.listed("presenting.pages")


def _selfchecks() -> Iterable[str]:
    from loam_lab.base import subcommands

    return subcommands.listed("dev.selfcheck")


allocators, workloads, syncs, machines, collectors, settings, tuned = (
    _names(one) for one in (_allocators, _workloads, _syncs, _machines, _collectors, _settings, _tuned)
)
allocator, workload, sync, machine, study, kind = (
    _names(one, several=False) for one in (_allocators, _workloads, _syncs, _machines, _studies, _kinds)
)
added, built, algorithm, engine, checked, limit, signal, page, selfcheck = (
    _names(one, several=False)
    for one in (_added, _built, _algorithms, _engines, _checked, _limits, _signals, _pages, _selfchecks)
)
