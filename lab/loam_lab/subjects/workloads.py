"""The registry of workloads and synchronisations, read from the executables themselves.

A synchronisation is one subject of loam-paths.json (`loam-workload-NAME`) or the path of a peer that speaks the same
command line.  Everything known about it is its answer to --describe.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from loam_lab.base import paths
from loam_lab.base.errors import LoamError, nearest, unknown
from loam_lab.model import schema
from loam_lab.model.description import Description, Parameter, Workload
from loam_lab.subjects.allocators import elf
from loam_lab.subjects.machines import Machine
from loam_lab.subjects.subject import Subject

DESCRIBE_TIMEOUT_S = 20
_ASKED_AT_ONCE = 8
# What a program is linked to whose accesses a simulated machine sees.
SIMULATOR = "libloam-simulator.so"
# As a synchronisation's name: every one that this checkout builds; what cannot run is skipped and told.
ALL = "all"
# Where none is named: the first that offers the workload. The library's own default for shared data, and one for workloads
# that share nothing.
DEFAULTS = ("auto", "none")


@dataclass(frozen=True)
class Executable:
    """One synchronisation: the label it has in results, how it is started, and what it says about itself.

    build_id: what identifies its files, see subjects.digest_of()
    """

    label: str
    subject: Subject
    description: Description
    build_id: str

    def workload(self, name: str) -> Workload:
        """The described workload.

        raises: LoamError with the nearest name if this executable has none of that name
        """
        described = self.description.workload(name)
        if described is None:
            raise unknown("WORKLOAD", name, [w.name for w in self.description.workloads], f"workload of {self.label}")
        return described

    def parameters(self, workload: str) -> dict[str, Parameter]:
        """Parameters of the synchronisation and the workload by name."""
        return self.description.parameters(workload)

    def check_runs(self, workload: str) -> None:
        """Refuse a workload that this machine cannot run; raises: LoamError as workload(), or naming what it lacks."""
        if lacks := self.workload(workload).lacks:
            what, remedy = lack_and_remedy(lacks)
            raise LoamError(workload, None, f"lacks {what}", remedy)

    def named_files(self, workload: str, parameters: Mapping[str, int | str]) -> list[str]:
        """The files that parameters name."""
        known = self.parameters(workload)
        return [str(value) for name, value in parameters.items() if value and known[name].type == "file"]


def lack_and_remedy(lacks: str) -> tuple[str, str]:
    """What a workload lacks, and the command that mends it ("" if none is known), of a description's one text."""
    what, _, remedy = lacks.rpartition(": ")
    return (what, remedy) if what else (lacks, "")


def describe(subject: Subject) -> Description:
    """What a subject says about itself; asked once per content of its files.

    raises: LoamError if it does not start, fails, or answers in another form or schema version
    """
    return _describe(subject, subject.digest())


@functools.cache
def _describe(subject: Subject, digest: str) -> Description:
    path = str(subject.program)
    hint = "it must answer --describe with one JSON object of the record schema"
    try:
        done = subprocess.run(
            [*subject.argv, "--describe"], stdin=subprocess.DEVNULL, capture_output=True, timeout=DESCRIBE_TIMEOUT_S,
            env={**os.environ, **dict(subject.environment)}, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise LoamError(path, None, f"no answer to --describe within {DESCRIBE_TIMEOUT_S} s", hint) from None
    except OSError as problem:
        raise LoamError(path, None, f"does not start: {problem.strerror}", hint) from None
    if done.returncode != 0:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        tail = f", saying: {lines[-1]}" if lines else ""
        raise LoamError(path, None, f"--describe ended with status {done.returncode}{tail}", hint)
    return _parsed(path, done.stdout, hint)


def _parsed(path: str, answer: bytes, hint: str) -> Description:
    """The description in an answer to --describe. raises: LoamError"""
    from pydantic import ValidationError

    try:
        version = json.loads(answer).get("schema")
    except (ValueError, AttributeError):
        raise LoamError(path, None, "--describe: the answer is not a JSON object", hint) from None
    if version != schema.SCHEMA:
        changes = "docs/internals/workloads.md lists what a peer has to change"
        raise LoamError(path, None, f"--describe: {schema.problem(version)}", f"build it from this revision; {changes}")
    try:
        return Description.model_validate_json(answer)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the answer"
        raise LoamError(path, None, f"--describe: {where}: {first['msg']}", hint) from None


def subjects_of(preset: str = "release") -> dict[str, Subject]:
    """The subjects of this checkout by the name of their synchronisation."""
    return {name: Subject.from_json(entry) for name, entry in paths.load_paths(preset)["executables"].items()}


def resolve_syncs(names: Sequence[str], preset: str = "release") -> list[Executable]:
    """Executables for the values of --sync: names of the registry, ALL, or paths of peers (anything with a slash).

    Two executables that give themselves the same name get their file name appended, so that cells stay apart.
    raises: LoamError for an unknown name (with the nearest), a missing file, or a bad answer to --describe
    """
    known: dict[str, Subject] | None = None
    executables: list[Executable] = []
    if ALL in names:
        known = subjects_of(preset)
        there = sorted(one for one in known if not known[one].missing())  # what is set up on demand may not be
        names = [one for name in names for one in (there if name == ALL else [name])]
    for name in dict.fromkeys(names):
        if "/" in name:
            subject = Subject.of(peer(name))
        else:
            known = known if known is not None else subjects_of(preset)
            if name not in known:
                raise paths.unknown_sync(name, [*known, ALL], preset)
            subject = known[name]
            if missing := subject.missing():
                raise LoamError("--sync", name, f"{missing} is missing", "run ./loam setup")
        description = describe(subject)
        label = description.sync.name
        if any(other.label == label for other in executables):
            label = f"{label}@{subject.program.name}"
        if any(other.label == label for other in executables):
            label = f"{description.sync.name}@{subject.program}"
        executables.append(Executable(label, subject, description, subject.digest()))
    return executables


def peer(name: str) -> Path:
    """The executable of a peer, which is named by its path; raises: LoamError if it is not there"""
    path = Path(name).absolute()
    if not path.is_file():
        raise LoamError("--sync", name, "no such file", "name an executable, or a synchronisation of loam list syncs")
    if not os.access(path, os.X_OK):
        raise LoamError("--sync", name, "is not executable", "name a program that answers --describe")
    return path


def check_parameter(parameter: Parameter, text: str, where: str = "-p") -> int | str:
    """The value of one parameter from its text.

    returns: of a file the whole path
    raises: LoamError naming the limit if it is no integer, out of range, no choice, or no file that can be read
    """
    subject = f"{where} {parameter.name}"
    if parameter.type == "file":
        return _file(text, subject)
    if parameter.type == "choice":
        if text not in parameter.choices:
            close = nearest(text, parameter.choices)
            raise LoamError(
                subject,
                text,
                "is not one of " + ", ".join(parameter.choices),
                f"did you mean {close}?" if close else "",
            )
        return text
    try:
        value = int(text)
    except ValueError:
        raise LoamError(subject, text, "is not an integer", parameter.help) from None
    low, high = parameter.min, parameter.max
    if (low is not None and value < low) or (high is not None and value > high):
        unit = f" {parameter.unit}" if parameter.unit else ""
        raise LoamError(subject, text, f"allowed are {low} to {high}{unit}", parameter.help)
    return value


def _file(text: str, subject: str) -> str:
    if not text:  # none is given
        return text
    path = Path(text).absolute()
    if not path.is_file():
        wrong = "is no regular file" if path.exists() else "there is no such file"
        raise LoamError(subject, text, wrong, "name a file that can be read")
    if not os.access(path, os.R_OK):
        raise LoamError(subject, text, "may not be read", "name a file that can be read")
    return str(path)


def check_parameters(
    levels: Mapping[str, Sequence[str]], workload: str, executables: Iterable[Executable], where: str = "-p"
) -> dict[str, list[int | str]]:
    """Typed levels of every parameter asked for.

    levels: texts per parameter, as given with -p or in a study
    returns: the same with values checked against each executable that knows the parameter
    raises: LoamError for a parameter that none of them knows (with the nearest name) or a bad value
    """
    known: dict[str, list[Parameter]] = {}
    for executable in executables:
        for name, parameter in executable.parameters(workload).items():
            known.setdefault(name, []).append(parameter)
    checked: dict[str, list[int | str]] = {}
    for name, texts in levels.items():
        if name not in known:
            raise unknown(where, name, known, f"parameter of {workload}")
        if not texts:
            raise LoamError(f"{where} {name}", "", "no value was given", f"write {name}=VALUE or {name}=A,B")
        for parameter in known[name]:
            checked[name] = list(dict.fromkeys(check_parameter(parameter, text, where) for text in texts))
    return checked


def built(preset: str = "release") -> list[Description]:
    """What the executables of this checkout that are there say about themselves, in the order of their names.

    Those that cannot say, as those of an older revision, are left out. All are asked at the same time.
    """
    try:
        subjects = sorted(subjects_of(preset).items())
    except LoamError:  # never configured: none is there
        return []
    with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
        return [
            description
            for description in pool.map(_description, (subject for _, subject in subjects))
            if description is not None
        ]


def _description(subject: Subject) -> Description | None:
    try:
        return None if subject.missing() else describe(subject)
    except LoamError:
        return None


def default_sync(workload: str, preset: str = "release", defaults: Sequence[str] = DEFAULTS) -> str | None:
    """The synchronisation that runs a workload where none is named; None if no executable that is built offers it.

    Those that cannot say, as those of an older revision, are left out.

    defaults: those that are preferred, in order
    """
    known = subjects_of(preset)
    for name in (*defaults, *sorted(known.keys() - set(defaults))):
        described = _description(known[name]) if name in known else None
        if described is not None and described.workload(workload):
            return name
    return None


def unfit(executable: Executable, workload: str, kinds: Collection[str]) -> str:
    """Why an executable does not offer a workload; kinds: of synchronisation on which it runs, empty where unknown"""
    kind = executable.description.sync.kind
    if kinds and kind not in kinds:
        wanted = " or ".join(sorted(kinds))
        return f"{workload} runs on synchronisations of kind {wanted}; {executable.label} is of kind {kind}"
    return f"{executable.label} has no workload {workload}"


def fitting(
    executables: Sequence[Executable], workload: str, preset: str = "release"
) -> tuple[list[Executable], list[str]]:
    """Of the synchronisations asked for those that can run a workload.

    returns: they, and for each that cannot why it is skipped
    raises: LoamError if none can, with those that would do, or the nearest workload
    """
    kept = [executable for executable in executables if executable.description.workload(workload)]
    if len(kept) == len(executables):
        return kept, []
    descriptions = [executable.description for executable in executables] + built(preset)
    offered = {described for description in descriptions if (described := description.workload(workload))}
    kinds = {kind for described in offered for kind in described.kinds}
    others = [executable for executable in executables if executable not in kept]
    why = [unfit(executable, workload, kinds) for executable in others]
    if kept:
        return kept, [f"{reason}; it is skipped; name another workload for it" for reason in why]
    if not offered:
        known = {described.name for description in descriptions for described in description.workloads}
        raise unknown("WORKLOAD", workload, known, "workload")
    do = sorted({description.sync.name for description in descriptions if description.workload(workload)})
    label = ",".join(executable.label for executable in others)
    # One that is called "none" must not read as if nothing would do.
    raise LoamError(
        "--sync", label, why[0], f"use --sync {do[0]}" if len(do) == 1 else f"these would do: {', '.join(do)}"
    )


def within_threads(executables: Iterable[Executable], threads: Sequence[int]) -> tuple[list[Executable], list[str]]:
    """Of all synchronisations those that run any of the thread counts.

    returns: they, and for each that does not run some of them, why it is skipped with those
    """
    kept, skipped = [], []
    for executable in executables:
        over = [str(count) for count in threads if count > executable.description.sync.threads_max]
        if over:
            skipped.append(
                f"{executable.label} {_at_most(executable)}; it is skipped with {', '.join(over)}; read its other cells"
            )
        if len(over) < len(threads):
            kept.append(executable)
    return kept, skipped


def _at_most(executable: Executable) -> str:
    """How many threads it runs, in words."""
    limit = executable.description.sync.threads_max
    return f"runs at most {limit} {'thread' if limit == 1 else 'threads'}"


def able(executables: Sequence[Executable], machine: Machine) -> tuple[list[Executable], list[str]]:
    """Of the synchronisations asked for those that a machine has what they need for.

    returns: they, and for each other one why it is skipped
    raises: LoamError if none is left
    """
    reasons: dict[str, str] = {}
    for executable in executables:
        sync = executable.description.sync
        if sync.needs and machine.simulated and not machine.transactions:
            reasons[executable.label] = f"{machine.words} has no {sync.needs}"
        elif sync.lacks and not machine.simulated:
            reasons[executable.label] = sync.lacks
    kept = [executable for executable in executables if executable.label not in reasons]
    if executables and not kept:
        label, reason = next(iter(reasons.items()))
        raise LoamError("--sync", label, reason, "choose another; it is never replaced by one")
    return kept, [
        f"{label} is skipped: {reason}; read its cells of other machines" for label, reason in reasons.items()
    ]


def check_instrumented(executables: Iterable[Executable], machine: Machine) -> None:
    """Refuses programs that a simulated machine could not see: they would run on the host.

    raises: LoamError naming the program
    """
    for executable in executables if machine.simulated else ():
        program = executable.subject.program
        try:
            needed = elf.read(program).needed
        except (OSError, elf.NotElf):
            needed = ()
        if SIMULATOR not in needed:
            raise LoamError(
                "--sync", executable.label, f"{program} was compiled without the simulator's hooks, so {machine.words} cannot "
                "run it", "leave out --machine, or name another (an executable of yours: build it with the preset sim)",
            )  # fmt: skip


def crowded(threads: Sequence[int], executables: Iterable[Executable], machine: Machine) -> list[str]:
    """What to say about thread counts for which a synchronisation that keeps processors for itself leaves too few."""
    notes = []
    for executable in executables:
        own = executable.description.sync.cpus_reserved
        over = [str(count) for count in threads if machine.threads - own < count <= machine.threads]
        if own and over:
            notes.append(
                f"{executable.label} keeps {own} of {machine.words}'s {machine.threads} hardware threads for itself; with "
                f"{', '.join(over)} its times describe the scheduler; they decide no claim"
            )
    return notes


def cautions(executables: Iterable[Executable], machine: Machine) -> list[str]:
    """What synchronisations say of themselves on this machine; a simulated one is not the one that was asked."""
    if machine.simulated:
        return []
    return [f"{each.label}: {each.description.sync.caution}" for each in executables if each.description.sync.caution]


def check_threads(
    threads: Sequence[int], executables: Iterable[Executable], machine: Machine, *, oversubscribe: bool
) -> None:
    """Refuses thread counts that cannot be run or would measure the scheduler.

    raises: LoamError naming threads_max of the synchronisation, the processors that it keeps for itself where they are
    all, or the machine's hardware threads
    """
    for count in threads:
        if count < 1:
            raise LoamError("--threads", count, "at least 1 thread is needed")
        for executable in executables:
            limit = executable.description.sync.threads_max
            if count > limit:
                raise LoamError(
                    "--threads", count, f"{executable.label} has threads_max {limit}: it {_at_most(executable)}",
                    "choose another --sync, or fewer --threads",
                )  # fmt: skip
            own, available = executable.description.sync.cpus_reserved, machine.threads
            if own >= available:
                raise LoamError(
                    "--threads", count, f"{executable.label} keeps {own} of {machine.words}'s {available} hardware threads "
                    "for itself", "use a larger machine",
                )  # fmt: skip
        if count > machine.threads and not oversubscribe:
            raise LoamError(
                "--threads",
                count,
                f"{machine.words} has {machine.threads} hardware threads",
                "add --oversubscribe to allow more",
            )
