"""A synchronisation that needs what a machine lacks is refused or skipped by name, never replaced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loam_lab.base.errors import LoamError
from loam_lab.model.description import Description
from loam_lab.subjects import machines, workloads
from loam_lab.subjects.subject import Subject


def executable(name: str, needs: str = "", lacks: str = "") -> workloads.Executable:
    sync = {"name": name, "kind": "transactional", "threads_max": 8, "needs": needs, "lacks": lacks}
    description = Description.model_validate({"schema": 2, "sync": sync, "workloads": []})
    return workloads.Executable(name, Subject((name,), (name,)), description, "id")


NEEDY = executable("htm-lock", "hardware transactions", "this processor has no hardware transactions")
ABLE = executable("htm-lock", "hardware transactions")
PLAIN = executable("norec")


def test_what_the_host_lacks_is_skipped_with_the_reason() -> None:
    kept, notes = workloads.able([NEEDY, PLAIN], machines.host())
    assert [one.label for one in kept] == ["norec"]
    assert len(notes) == 1
    assert "no hardware transactions" in notes[0]


def test_alone_it_is_refused() -> None:
    with pytest.raises(LoamError, match="no hardware transactions"):
        workloads.able([NEEDY], machines.host())


def test_a_simulated_machine_is_asked_itself() -> None:
    simulated = replace(machines.host(), simulated=True, name="sim:x")
    with pytest.raises(LoamError, match="machine sim:x has no hardware transactions"):
        workloads.able([ABLE], simulated)
    assert workloads.able([NEEDY], replace(simulated, transactions=True)) == ([NEEDY], [])


def test_what_needs_nothing_runs_everywhere() -> None:
    assert workloads.able([PLAIN, ABLE], machines.host()) == ([PLAIN, ABLE], [])


def test_what_runs_but_means_little_here_says_so() -> None:
    sync = {"name": "h-synch", "kind": "delegation", "threads_max": 8, "caution": "one package of processors"}
    description = Description.model_validate({"schema": 2, "sync": sync, "workloads": []})
    hinted = workloads.Executable("h-synch", Subject(("h-synch",), ("h-synch",)), description, "id")
    assert workloads.cautions([hinted, PLAIN], machines.host()) == ["h-synch: one package of processors"]
    assert workloads.cautions([hinted], replace(machines.host(), simulated=True, name="sim:x")) == []
