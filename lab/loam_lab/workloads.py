"""The registry of workloads and synchronisations, read from the executables themselves.

A synchronisation is one executable (`loam-workload-NAME`, listed in loam-paths.json) or the path of a peer that
speaks the same command line.  Everything known about it is its answer to --describe.
"""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from loam_lab import paths
from loam_lab.errors import LoamError, nearest, unknown
from loam_lab.model.description import SCHEMA, Description, Parameter, Workload

DESCRIBE_TIMEOUT_S = 20
# As a synchronisation's name: every one that this checkout builds; what cannot run is skipped and told.
ALL = "all"


@dataclass(frozen=True)
class Executable:
    """One synchronisation: the label it has in results, its file, and what it says about itself.

    build_id: GNU build-id where the file has one, else "sha256:" and the file's digest
    """

    label: str
    path: Path
    description: Description
    build_id: str

    def workload(self, name: str) -> Workload:
        """The described workload.

        raises: LoamError with the nearest name if this executable has none of that name
        """
        found = self.description.workload(name)
        if found is None:
            raise unknown("WORKLOAD", name, [w.name for w in self.description.workloads], f"workload of {self.label}")
        return found

    def parameters(self, workload: str) -> dict[str, Parameter]:
        """Parameters of the synchronisation and the workload by name."""
        return self.description.parameters(workload)


def describe(path: Path) -> Description:
    """What an executable says about itself; asked once per file and modification.

    path: the executable
    raises: LoamError if it does not start, fails, or answers in another form or schema version
    """
    try:
        status = path.stat()
    except OSError as problem:
        raise LoamError("--sync", path, f"cannot be used: {problem.strerror}", "name an executable file") from None
    return _describe(str(path), status.st_mtime_ns, status.st_size)


@functools.cache
def _describe(path: str, mtime_ns: int, size: int) -> Description:
    hint = "it must answer --describe with one JSON object of the record schema"
    try:
        done = subprocess.run(
            [path, "--describe"], stdin=subprocess.DEVNULL, capture_output=True, timeout=DESCRIBE_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise LoamError(path, None, f"no answer to --describe within {DESCRIBE_TIMEOUT_S} s", hint) from None
    except OSError as problem:
        raise LoamError(path, None, f"does not start: {problem.strerror}", hint) from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        tail = f", saying: {said[-1]}" if said else ""
        raise LoamError(path, None, f"--describe ended with status {done.returncode}{tail}", hint)
    from pydantic import ValidationError

    try:
        description = Description.model_validate_json(done.stdout)
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the answer"
        raise LoamError(path, None, f"--describe: {where}: {first['msg']}", hint) from None
    if description.version != SCHEMA:
        raise LoamError(
            path, None, f"speaks schema {description.version}, this lab speaks {SCHEMA}", "build both from one revision"
        )
    return description


@functools.cache
def _digest(path: str, device: int, inode: int, mtime_ns: int) -> str:
    with Path(path).open("rb") as file:
        if file.read(4) == b"\x7fELF":
            from loam_lab.allocators.identify import identify

            build_id = identify(Path(path)).build_id
            if build_id:
                return build_id
        file.seek(0)
        return "sha256:" + hashlib.file_digest(file, "sha256").hexdigest()


def build_id(path: Path) -> str:
    """GNU build-id of an executable, or "sha256:..." of a file that has none (a script, a stripped peer)."""
    status = path.stat()
    return _digest(str(path), status.st_dev, status.st_ino, status.st_mtime_ns)


def sync_names(preset: str = "release") -> list[str]:
    """Names of the synchronisations that this checkout builds, sorted."""
    return sorted(paths.load_paths(preset)["executables"])


def resolve_syncs(names: Sequence[str], preset: str = "release") -> list[Executable]:
    """Executables for the values of --sync: names of the registry, ALL, or paths of peers (anything with a slash).

    Two executables that give themselves the same name get their file name appended, so that cells stay apart.
    raises: LoamError for an unknown name (with the nearest), a missing file, or a bad answer to --describe
    """
    known: dict[str, str] | None = None
    found: list[Executable] = []
    if ALL in names:
        known = paths.load_paths(preset)["executables"]
        names = [one for name in names for one in (sorted(known) if name == ALL else [name])]
    for name in dict.fromkeys(names):
        if "/" in name:
            path = Path(name).absolute()
            if not path.is_file():
                raise LoamError(
                    "--sync", name, "no such file", "name an executable, or a synchronisation of loam list syncs"
                )
            if not os.access(path, os.X_OK):
                raise LoamError("--sync", name, "is not executable", "name a program that answers --describe")
        else:
            if known is None:
                known = paths.load_paths(preset)["executables"]
            if name not in known:
                raise unknown("--sync", name, [*known, ALL], "synchronisation")
            path = Path(known[name])
            if not path.is_file():
                raise LoamError("--sync", name, f"{path} is not built", "run ./loam setup")
        description = describe(path)
        label = description.sync.name
        if any(other.label == label for other in found):
            label = f"{label}@{path.name}"
        if any(other.label == label for other in found):
            label = f"{description.sync.name}@{path}"
        found.append(Executable(label, path, description, build_id(path)))
    return found


def check_parameter(parameter: Parameter, text: str, where: str = "-p") -> int | str:
    """The value of one parameter from its text.

    raises: LoamError naming the limit if it is no integer, out of range, or no choice
    """
    subject = f"{where} {parameter.name}"
    if parameter.type == "choice":
        if text not in parameter.choices:
            close = nearest(text, parameter.choices)
            raise LoamError(
                subject, text, "is none of " + ", ".join(parameter.choices), f"did you mean {close}?" if close else ""
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


def fitting(
    executables: Iterable[Executable], workload: str, threads: Sequence[int]
) -> tuple[list[Executable], list[str]]:
    """Of all synchronisations those that can run a workload, with any of the thread counts.

    returns: they, and for each that cannot, wholly or in part, why it is skipped
    """
    kept, skipped = [], []
    for executable in executables:
        if all(offered.name != workload for offered in executable.description.workloads):
            skipped.append(
                f"{executable.label} has no workload {workload}; it is skipped; name another workload for it"
            )
            continue
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


def check_threads(threads: Sequence[int], executables: Iterable[Executable], *, oversubscribe: bool) -> None:
    """Refuses thread counts that cannot be run or would measure the scheduler.

    raises: LoamError naming threads_max of the synchronisation, or the machine's hardware threads
    """
    available = len(os.sched_getaffinity(0))
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
        if count > available and not oversubscribe:
            raise LoamError(
                "--threads",
                count,
                f"this machine has {available} hardware threads",
                "add --oversubscribe to allow more",
            )
