"""From the options of a command line to the engine that they choose, and to a study on its hosts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from loam_lab.base.errors import LoamError, unknown
from loam_lab.subjects import machines

if TYPE_CHECKING:
    from loam_lab.campaign.fleet.coordinate import Fleet
    from loam_lab.campaign.fleet.engine import Engine
    from loam_lab.model.study import Study

LOCAL = "local"
ENGINES = (LOCAL, "slurm", "ssh")


@dataclass(frozen=True)
class Choice:
    """What the command line says of engines.

    name: one of ENGINES; hosts: by name; partition: of Slurm; options: passed on to the engine's own commands
    identical: sets of hosts that are declared to be of one kind
    """

    name: str = LOCAL
    hosts: tuple[str, ...] = ()
    partition: str | None = None
    options: tuple[str, ...] = ()
    identical: tuple[tuple[str, ...], ...] = ()

    @property
    def local(self) -> bool:
        """Whether runs are measured by this process."""
        return self.name == LOCAL

    def check(self) -> None:
        """Refuse what does not fit together; raises: LoamError"""
        if self.name not in ENGINES:
            raise unknown("--engine", self.name, ENGINES, "engine")
        given = {
            "--hosts": self.hosts, "--partition": self.partition, "--engine-option": self.options,
            "--identical": tuple(name for names in self.identical for name in names),
        }  # fmt: skip
        for option, value in given.items():
            if value and (self.local or (option == "--partition" and self.name != "slurm")):
                shown = value if isinstance(value, str) else ",".join(value)
                raise LoamError(option, shown, f"--engine {self.name} has no use for it", "name another --engine")
        if self.name == "ssh" and not self.hosts:
            raise LoamError("--engine", "ssh", "needs hosts", "for example --hosts alpha,user@beta")
        for names in self.identical:
            if len(names) < 2:
                raise LoamError(
                    "--identical", ",".join(names), "needs two hosts or more", "for example --identical alpha,beta"
                )
            for name in names if self.hosts else ():
                if name not in self.hosts:
                    raise unknown("--identical", name, self.hosts, "host")

    def words(self) -> list[str]:
        """The same as options, without those that have their default."""
        if self.local:
            return []
        words = ["--engine", self.name]
        words += ["--partition", self.partition] if self.partition else []
        words += ["--hosts", ",".join(self.hosts)] if self.hosts else []
        words += [word for names in self.identical for word in ("--identical", ",".join(names))]
        return words + [f"--engine-option={option}" for option in self.options]

    def engine(self) -> Engine:
        """The engine."""
        if self.name == "slurm":
            from loam_lab.campaign.fleet.slurm import Slurm

            return Slurm(self.partition, self.hosts, self.options)
        from loam_lab.campaign.fleet.ssh import Ssh

        return Ssh(self.hosts, self.options)


def reach(study: Study, choice: Choice, preset: str = "release") -> tuple[Study, Fleet, list[str]]:
    """The study on the hosts of an engine, what carries its runs there, and what to say about the hosts.

    Each host is a machine of its own: what is compared never shares a block with another host's.
    raises: LoamError if no host can be used, or the study is of simulated machines
    """
    from loam_lab.campaign.fleet import survey
    from loam_lab.campaign.fleet.coordinate import Fleet
    from loam_lab.campaign.measure.builds import prepare

    for group in study.groups:
        if other := [name for name in group.machines if name != machines.HOST]:
            limit = f"group {group.name} is measured on {other[0]}, which needs no other host"
            raise LoamError("--engine", choice.name, limit, "leave out --engine, or --machine")
    engine, shared = choice.engine(), choice.name == "slurm"
    if shared:  # the nodes run what this machine builds, and are asked for its digests: build it first
        engine.hosts()  # reports a name that does not exist before anything is built
        prepare(study, preset)
    hosts, notes = survey.ask(engine, study, preset, shared=shared)
    groups = tuple(group.model_copy(update={"machines": tuple(hosts)}) for group in study.groups)
    changed = {"groups": groups, "identical": choice.identical or study.identical}
    return study.model_copy(update=changed), Fleet(engine, hosts), notes
