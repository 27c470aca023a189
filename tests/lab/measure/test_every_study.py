"""Every study of the checkout against the programs that it runs: a parameter that none of them knows is found here, and a
claim that names what does not exist, not by the first reader who types the study's name."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.campaign.measure import plan
from loam_lab.dev.testing import lots
from loam_lab.judging.claims import check
from loam_lab.model import studies
from loam_lab.model.claim import Claim, Needs
from loam_lab.model.description import Description
from loam_lab.model.study import Group, Study
from loam_lab.subjects import machines, workloads
from loam_lab.subjects.allocators import registry


def runnable(group: Group) -> list[str]:
    """The synchronisations of a group that this machine has the programs for (no JDK, no such command: it has not)."""
    own = {name: subject for name, subject in workloads.subjects_of().items() if not subject.missing()}
    return [name for name in plan.syncs_of(group) if name in own]


def levels_known(group: Group) -> bool:
    """Check the levels of a group; False where this machine cannot run its programs.

    raises: LoamError for a level that no program of the group knows
    """
    names = runnable(group)
    if not names:
        return False
    executables, _ = workloads.fitting(workloads.resolve_syncs(names), group.workload)
    workloads.check_parameters(group.levels(), group.workload, executables)
    return True


def forms(study: Study) -> list[Study]:
    return [study, study.quick(study.blocks)]


def strange_names(study: Study) -> list[str]:
    """What the groups of a study and the needs of its claims name, and nothing in this checkout is called."""
    known_workloads = {workload.name for one in workloads.built() for workload in one.workloads}
    known = {
        "synchronisation": set(workloads.subjects_of()),
        "workload": known_workloads,
        "allocator": set(registry.definitions()),
    }
    named: list[tuple[str, str, str]] = []

    def note(where: str, kind: str, names: Iterable[str]) -> None:
        named.extend((where, kind, name) for name in names)

    for group in study.groups:
        note(f"group {group.name}", "synchronisation", (name for name in plan.syncs_of(group) if "/" not in name))
    for claim in study.claims:
        note(f"claim {claim.id}", "synchronisation", claim.needs.syncs)
        note(f"claim {claim.id}", "workload", claim.needs.workloads)
        note(f"claim {claim.id}", "allocator", (registry.split(name)[0] for name in claim.needs.allocators))
        if claim.needs.machine:
            machines.find(claim.needs.machine, f"claim {claim.id}")
    return [f"{where}: no {kind} {name}" for where, kind, name in named if name not in known[kind]]


def described(study: Study) -> dict[str, list[Description]]:
    """What the programs of each group say about themselves; none of a group that cannot run here."""
    by_group = {group.name: runnable(group) for group in study.groups}
    return {
        name: [executable.description for executable in workloads.resolve_syncs(syncs)]
        for name, syncs in by_group.items()
        if syncs
    }


@pytest.mark.parametrize("name", sorted(studies.registry()))
def test_every_level_of_a_study_is_known_to_its_programs(name: str) -> None:
    lots.build_release()
    study = studies.load(studies.registry()[name])
    checked = [levels_known(group) for form in forms(study) for group in form.groups]
    assert checked


@pytest.mark.parametrize("name", sorted(studies.registry()))
def test_everything_that_a_claim_names_exists(name: str) -> None:
    lots.build_release()
    study = studies.load(studies.registry()[name])
    assert strange_names(study) == []
    check.check(study, described(study))
    without = [claim.id for claim in study.claims if not claim.predicates]
    assert without == [], "what these need exists, so they can say how they are decided"


def test_a_level_that_no_program_knows_is_found() -> None:
    lots.build_release()
    tour = studies.load(studies.registry()["tour"])
    alone = next(group for group in tour.groups if group.sync == ("sequential",))
    wrong = alone.model_copy(update={"parameters": {**alone.parameters, "privatization": "none"}})
    with pytest.raises(LoamError, match="privatization: not the name of a parameter of intset"):
        levels_known(wrong)


def test_a_name_that_nothing_has_is_found() -> None:
    lots.build_release()
    tour = studies.load(studies.registry()["tour"])
    needs = Needs(syncs=("gc-dedicated-checked",), workloads=("gcbenchmark",), allocators=("glibc", "nomalloc"))
    claim = Claim(id="002-99", section="1", sentence="It is so.", needs=needs)
    assert strange_names(tour.model_copy(update={"claims": (claim,)})) == [
        "claim 002-99: no synchronisation gc-dedicated-checked",
        "claim 002-99: no workload gcbenchmark",
        "claim 002-99: no allocator nomalloc",
    ]
    wrong = claim.model_copy(update={"needs": Needs(machine="sim:nowhere")})
    with pytest.raises(LoamError, match="sim:nowhere"):
        strange_names(tour.model_copy(update={"claims": (wrong,)}))
