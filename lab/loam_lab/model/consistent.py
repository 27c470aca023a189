"""Whether claims and paper figures name what their study has: groups, allocators, levels.

Mistakes come with their place in the file, so that the reader of the file can point to the line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from loam_lab.base.errors import nearest
from loam_lab.model.claim import BLOCKS, Ours, Selection

if TYPE_CHECKING:
    from loam_lab.model.claim import Predicate
    from loam_lab.model.study import Group, Study

Where = tuple[str | int, ...]
# (place, what is wrong, next step)
Mistake = tuple[Where, str, str]


def mistakes(study: Study) -> Iterator[Mistake]:
    """Every mistake of a study whose single tables are whole, in the order of the file."""
    groups = {group.name: group for group in study.groups}
    for index, group in enumerate(study.groups):
        if group.quick is not None:
            for name in group.quick.parameters.keys() - group.parameters.keys():
                where: Where = ("groups", index, "quick", "parameters", name)
                yield where, f"group {group.name} does not set {name}", _near(name, group.parameters)
    for index, figure in enumerate(study.figures):
        for name in figure.groups:
            if name not in groups:
                place: Where = ("figures", index, "groups")
                yield place, f"a figure names group {name!r}, which the study does not have", _near(name, groups)
    allocators = list(dict.fromkeys(name for group in study.groups for name in study.allocators_of(group)))
    for name in study.versions:
        if name not in allocators:
            yield ("versions", name), f"no group measures allocator {name!r}", _near(name, allocators)
    for name, label in study.labels.items():
        if name not in (*allocators, *study.versions.values()):
            yield ("labels", name), f"no group measures allocator {name!r}", _near(name, allocators)
        if label in allocators or list(study.labels.values()).count(label) > 1:
            yield ("labels", name), f"two allocators would be called {label!r}", "give each its own label"
    seen: set[str] = set()
    claims = {claim.id for claim in study.claims}
    for index, claim in enumerate(study.claims):
        place = ("claims", index)
        if claim.id in seen:
            yield (*place, "id"), f"two claims have the id {claim.id}", "give each its own"
        seen.add(claim.id)
        for number, other in enumerate(claim.follows_from):
            if other == claim.id or other not in claims:
                yield (
                    (*place, "follows_from", number),
                    f"there is no other claim {other}",
                    _near(other, claims - {claim.id}),
                )
        for number, assumption in enumerate(claim.assumes):
            for which, instead in enumerate(assumption.instead):
                for predicate in claim.at(instead).predicates:
                    where = (*place, "assumes", number, "instead", which)
                    for selection in predicate.selections():
                        yield from _selection(study, groups, selection, where)
        for number, predicate in enumerate(claim.predicates):
            where = (*place, "predicates", number)
            if predicate.along and predicate.along != "threads":
                group_of = groups.get(predicate.of.group)
                if group_of is not None and predicate.along not in group_of.parameters:
                    text = f"group {group_of.name} does not vary {predicate.along}"
                    yield (*where, "along"), text, _near(predicate.along, ["threads", *group_of.parameters])
                    continue
            yield from _one_machine(groups, predicate, where)
            for selection in predicate.selections():
                yield from _selection(study, groups, selection, where)
    for index, paper_figure in enumerate(study.paper_figures):
        place = ("paper_figures", index)
        for name in paper_figure.groups:
            if name not in groups:
                yield (*place, "groups"), f"the study has no group {name!r}", _near(name, groups)
        for number, ours in enumerate(paper_figure.ours):
            part: Where = (*place, "ours", number)
            yield from _ours(study, groups, ours, part)


def _one_machine(groups: dict[str, Group], predicate: Predicate, where: Where) -> Iterator[Mistake]:
    """A value of one machine is never compared with one of another: of a simulated one least of all."""
    known = [one for one in predicate.selections() if one.group in groups]
    machines = list(dict.fromkeys(one.machine or groups[one.group].machines[0] for one in known))
    if len(machines) > 1:
        yield where, f"it compares {' with '.join(machines)}", "name groups of one machine"


def _ours(study: Study, groups: dict[str, Group], ours: Ours, where: Where) -> Iterator[Mistake]:
    group = groups.get(ours.select.group)
    if group is None:
        yield (*where, "select"), f"the study has no group {ours.select.group!r}", _near(ours.select.group, groups)
        return
    if ours.rows not in ("allocator", "threads", *group.parameters):
        text = f"group {group.name} does not vary {ours.rows}"
        yield (*where, "rows"), text, _near(ours.rows, ["allocator", "threads", *group.parameters])
        return
    one = ours.select
    if ours.rows == "threads":
        one = one.at("threads", group.threads[0])
    elif ours.rows != "allocator":
        one = one.at(ours.rows, group.levels()[ours.rows][0])
    yield from _selection(study, groups, one, where)


def _selection(study: Study, groups: dict[str, Group], selection: Selection, where: Where) -> Iterator[Mistake]:
    group = groups.get(selection.group)
    if group is None:
        yield where, f"the study has no group {selection.group!r}", _near(selection.group, groups)
        return
    known = [*study.allocators_of(group), *study.lookalikes, *study.versions]
    for name in selection.allocator:
        if name not in known:
            yield where, f"group {group.name} does not measure allocator {name!r}", _near(name, known)
    if selection.sync and selection.sync not in group.sync:
        yield where, f"group {group.name} does not run {selection.sync!r}", _near(selection.sync, group.sync)
    if not selection.sync and len(group.sync) > 1:
        yield where, f"group {group.name} has several synchronisations", f"name one: {', '.join(group.sync)}"
    if selection.machine and selection.machine not in group.machines:
        wrong = f"group {group.name} does not run on {selection.machine!r}"
        yield where, wrong, _near(selection.machine, group.machines)
    if not selection.machine and len(group.machines) > 1:
        yield where, f"group {group.name} runs on several machines", f"name one: {', '.join(group.machines)}"
    counts = ", ".join(map(str, group.threads))
    if selection.threads is not None and selection.threads not in group.threads:
        yield where, f"group {group.name} has no cells of {selection.threads} threads", f"it has {counts}"
    if selection.threads is None and len(group.threads) > 1:
        yield where, f"group {group.name} has several thread counts", f"name one of threads: {counts}"
    levels = group.levels()
    for name, level in selection.parameters.items():
        if name not in levels:
            yield where, f"group {group.name} does not set {name}", _near(name, levels)
        elif str(level) not in levels[name]:
            yield where, f"group {group.name} has no level {level} of {name}", f"it has {', '.join(levels[name])}"
    if selection.over != BLOCKS and len(levels.get(selection.over, ())) < 2:
        yield where, f"group {group.name} does not vary {selection.over!r}", f"over = {BLOCKS!r}, or a varied parameter"
    for name, chosen in levels.items():
        if len(set(chosen)) > 1 and name not in selection.parameters and name != selection.over:
            yield where, f"group {group.name} has several levels of {name}", f"name one: {', '.join(chosen)}"


def _near(name: str, known: Iterable[str]) -> str:
    names = list(known)
    close = nearest(name, names)
    return f"did you mean {close}?" if close else f"there are: {', '.join(names)}"
