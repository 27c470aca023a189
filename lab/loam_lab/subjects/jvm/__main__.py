"""A library on the JVM as a synchronisation: chooses the virtual machine's flags and becomes that machine.

    python -m loam_lab.subjects.jvm LIBRARY --describe
    python -m loam_lab.subjects.jvm LIBRARY WORKLOAD --threads N --seed S [--warmup-ms N] [--records FD] [-p name=value]...

The heap limit is a multiple of what is live, so another virtual machine is first asked how much that is; the answer is
kept. Variables that put an allocator into a process come in LOAM_ALLOCATOR_VARIABLES and are given to the measured
machine alone.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from loam_lab.base.errors import LoamError
from loam_lab.model.protocol import ALLOCATOR_VARIABLES
from loam_lab.setup import jvm

COLLECTORS = {
    "serial": ("-XX:+UseSerialGC",),
    "parallel": ("-XX:+UseParallelGC",),
    "g1": ("-XX:+UseG1GC",),
    "zgc": ("-XX:+UseZGC",),
    "shenandoah": ("-XX:+UseShenandoahGC",),
    "epsilon": ("-XX:+UnlockExperimentalVMOptions", "-XX:+UseEpsilonGC"),
}
# The virtual machine of Java 17 refuses less, or spends its time in start-up.
LEAST_HEAP_BYTES = 8 << 20
# No files in /tmp; and what the machine says of itself does not go to standard output, where the records go.
QUIET = ("-XX:-UsePerfData", "-Xlog:disable", "-Xlog:all=error:stderr")
AGENT = "jvm-word"
INSTRUMENTED = "org/loam/jvm/tm/,org/loam/jvm/programs/,org/loam/jvm/syncs/Word"
# What decides nothing about the data that is live.
_NOT_OF_THE_DATA = ("collector", "heap_percent", "heap_mib", "warm_up", "operations")


def parameters(arguments: Sequence[str]) -> dict[str, str]:
    """The -p of a command line; the machine itself refuses what is wrong with them."""
    pairs = [value for flag, value in itertools.pairwise(arguments) if flag == "-p"]
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs)}


def defaults(described: Mapping[str, object]) -> dict[str, str]:
    """The defaults of a library's own parameters, as its description has them."""
    sync = described["sync"]
    assert isinstance(sync, dict)
    return {one["name"]: str(one["default"]) for one in sync["parameters"]}


def heap_bytes(values: Mapping[str, str], live_bytes: int) -> int:
    """The heap limit: in MiB where that is given, else in percent of what is live."""
    mib = int(values["heap_mib"])
    return mib << 20 if mib else max(LEAST_HEAP_BYTES, live_bytes * int(values["heap_percent"]) // 100)


def virtual_machine(library: str) -> list[str]:
    """The command line up to the library's name, without the flags of heap and collector."""
    agent = [f"-javaagent:{jvm.jar()}={INSTRUMENTED}"] if library == AGENT else []
    return [str(jvm.java_home() / "bin/java"), *QUIET, *agent, "-jar", str(jvm.jar()), library]


def flags(collector: str, heap: int, live: int) -> list[str]:
    """Flags of the measured machine: its heap has its full size from the start."""
    sizes = [f"-Xms{heap}", f"-Xmx{heap}", f"-Dloam.heap_bytes={heap}", f"-Dloam.live_bytes={live}"]
    return [*COLLECTORS.get(collector, ()), *sizes]


def live_bytes(library: str, arguments: Sequence[str], digest: str) -> int:
    """How many bytes are live once the program's data is made. Asked once per jar, library and data."""
    data = _data(arguments)
    key = hashlib.sha256("\0".join([digest, library, *data]).encode()).hexdigest()[:24]
    kept = jvm.folder() / "live" / key
    if kept.is_file():
        return int(kept.read_text())
    machine = virtual_machine(library)
    done = subprocess.run(
        [machine[0], "-XX:+UseSerialGC", *machine[1:], "--live", *data], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        sys.stderr.write(done.stderr)
        raise SystemExit(done.returncode)
    kept.parent.mkdir(parents=True, exist_ok=True)
    part = kept.with_suffix(f".{os.getpid()}")
    part.write_text(done.stdout.strip())
    part.replace(kept)
    return int(done.stdout)


def _data(arguments: Sequence[str]) -> list[str]:
    """Of a command line what decides about the data."""
    kept = [arguments[0]]
    for flag, value in zip(arguments[1::2], arguments[2::2], strict=False):
        of_machine = flag == "-p" and value.partition("=")[0] in _NOT_OF_THE_DATA
        if flag not in ("--records", "--warmup-ms", "--seed") and not of_machine:
            kept += [flag, value]
    return kept


def _records_to_stdout(arguments: Sequence[str]) -> list[str]:
    """A virtual machine writes to an inherited descriptor only as its standard output."""
    changed = list(arguments)
    for at, flag in enumerate(arguments[:-1]):
        if flag == "--records" and arguments[at + 1].isdigit():
            os.dup2(int(arguments[at + 1]), 1)
            changed[at + 1] = "1"
    return changed


def main(arguments: Sequence[str]) -> int:
    """Describe, or become the measured machine."""
    library, *rest = arguments
    described = jvm.description(library)
    if not described.is_file():
        raise LoamError(library, None, "is not set up", f"run ./loam run gcbench --sync {library}")
    if rest == ["--describe"]:
        sys.stdout.write(described.read_text())
        return 0
    become(library, rest, {**defaults(json.loads(described.read_text())), **parameters(rest)})
    return 0


def become(library: str, rest: Sequence[str], values: Mapping[str, str]) -> None:
    """Become the measured machine: there is no way back."""
    heap = live = 0
    try:
        live = live_bytes(library, rest, _digest_of_jar())
        heap = heap_bytes(values, live)
    except ValueError:
        heap = LEAST_HEAP_BYTES  # a parameter is no number: the machine says so
    machine = virtual_machine(library)
    command = [machine[0], *flags(values["collector"], heap, live), *machine[1:], *_records_to_stdout(rest)]
    environment = {**os.environ, **json.loads(os.environ.get(ALLOCATOR_VARIABLES, "{}"))}
    environment.pop(ALLOCATOR_VARIABLES, None)
    sys.stdout.flush()
    used = os.times()  # of this process so far, which the machine takes from what it used
    command[1:1] = [f"-Dloam.front_user_s={used.user}", f"-Dloam.front_system_s={used.system}"]
    os.execve(command[0], command, environment)


def _digest_of_jar() -> str:
    status = Path(jvm.jar()).stat()
    return f"{status.st_size} {status.st_mtime_ns}"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except LoamError as problem:
        sys.stderr.write(f"error: {problem.line()}\n")
        sys.exit(problem.exit_code)
