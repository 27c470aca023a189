"""What the options of `bench` ask for: a command as it stands, or a Job."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from loam_lab.base.errors import LoamError
from loam_lab.commands.bench import cgroups, job, scan, target
from loam_lab.commands.bench.job import SAME_OUTPUT, Job

TIMEOUT_S = 600.0
_COMMAND = "as in ./loam bench -- /usr/bin/python3 -c 'print(1)'"
_WATCHED_SERVER = "as in --server 'redis-server --bind 127.0.0.1' --ready 6379 --load 'redis-benchmark -q'"
_SERVER = "as in --server 'redis-server --bind 127.0.0.1' --ready 6379 --load 'redis-benchmark -q' --metric '...'"


def what(
    command: Sequence[str],
    *,
    server: str | None,
    ready: str | None,
    load: str | None,
    metric: str | None,
    better: str | None,
    commands: Sequence[str],
    command_file: Path | None,
    prepare: str,
    cleanup: str,
    checks: Sequence[str],
    warmup: int,
    limits: Sequence[str],
    timeout_s: float | None,
    ignore_failure: bool = False,
    fill: str = "",
    scans: Sequence[str] = (),
    stop: str | None = None,
) -> Sequence[str] | Job:
    """The command or the job that the options ask for; every program that they name is there.

    raises: LoamError where options are missing, do not go together, or name what is not there
    """
    lines = [*commands, *(_lines(command_file) if command_file is not None else ())]
    given = [name for name, one in (("--", command), ("--server", server), ("--command", lines)) if one]
    of_server = {"--ready": ready, "--load": load, "--metric": metric}
    if server is None and (
        surplus := [
            name for name, one in {**of_server, "--better": better, "--fill": fill, "--stop": stop}.items() if one
        ]
    ):
        raise LoamError(surplus[0], None, "belongs to a server", _SERVER)
    if not given:
        raise LoamError("bench", None, "no command was given", _COMMAND)
    if len(given) > 1:
        raise LoamError("bench", " and ".join(given), "only one of them can be measured at a time", _COMMAND)
    if scans and server is not None:
        raise LoamError("--scan", scans[0], "belongs to a command", "measure a server once for each value")
    if ignore_failure and server is not None:
        raise LoamError("--ignore-failure", None, "belongs to a command", "a server has to end well")
    same = SAME_OUTPUT in checks
    scripts = [check for check in checks if check != SAME_OUTPUT]
    if len(scripts) > 1:
        raise LoamError("--check", scripts[1], "one line is enough", "join them with &&")
    if server is None:
        if command and not (prepare or cleanup or checks or warmup or limits or ignore_failure or scans):
            target.program(command[0])
            return command
    elif missing := [name for name, one in of_server.items() if not one]:
        raise LoamError("--server", server, f"needs {' and '.join(missing)} too", _SERVER)
    if ready is not None:
        _check_ready(ready)
    bounds, group = job.limits(limits)
    cgroups.check(group)
    texts = {job.joined(command): list(command)} if command else {line: job.words("--command", line) for line in lines}
    if scans:
        texts = {job.joined(one): one for words in texts.values() for one in scan.expanded(words, scans)}
    return Job(
        commands={text: [target.program(one[0]), *one[1:]] for text, one in texts.items()},
        server=_program("--server", server), ready=ready or "", load=_program("--load", load), metric=metric or "",
        better=job.direction(metric, better) if metric else "", prepare=prepare, cleanup=cleanup,
        check=scripts[0] if scripts else "", same_output=same, warmup=warmup, limits=bounds, group=group,
        timeout_s=timeout_s or TIMEOUT_S, ignore_failure=ignore_failure, fill=fill,
        stop=job.signal_named(stop) if stop else "",
    )  # fmt: skip


def to_watch(
    by: str, command: Sequence[str], *, server: str | None, ready: str | None, load: str | None, fill: str,
    timeout_s: float,
) -> Sequence[str] | Job:  # fmt: skip
    """What `trace record` and `explain` are asked for: a command, or a server under a load of which nothing is measured.

    by: the name of the command of ours
    raises: LoamError as what()
    """
    of_server = {"--ready": ready, "--load": load}
    if server is None:
        if surplus := [name for name, one in {**of_server, "--fill": fill}.items() if one]:
            raise LoamError(surplus[0], None, "belongs to a server", _WATCHED_SERVER)
        if not command:
            raise LoamError(by, None, "no command was given", f"as in ./loam {by} -- lua5.4 FILE")
        return [target.program(command[0], by), *command[1:]]
    if command:
        raise LoamError(by, "-- and --server", "only one of them can run at a time", _WATCHED_SERVER)
    if missing := [name for name, one in of_server.items() if not one]:
        raise LoamError("--server", server, f"needs {' and '.join(missing)} too", _WATCHED_SERVER)
    _check_ready(ready or "")
    return Job(
        commands={}, server=_program("--server", server), ready=ready or "", load=_program("--load", load), metric="",
        better="", prepare="", cleanup="", check="", same_output=False, warmup=0, limits={}, group={}, timeout_s=timeout_s,
        fill=fill,
    )  # fmt: skip


def _program(option: str, line: str | None) -> list[str]:
    if line is None:
        return []
    words = job.words(option, line)
    return [target.program(words[0]), *words[1:]]


def _check_ready(ready: str) -> None:
    if ready.isdigit():
        if not 0 < int(ready) < 65536:
            raise LoamError("--ready", ready, "is no port: 1 to 65535", "or a pattern in what the server writes")
        return
    try:
        re.compile(ready)
    except re.error as problem:
        raise LoamError("--ready", ready, f"is neither a port nor a regular expression: {problem}", "") from None


def _lines(file: Path) -> list[str]:
    """The commands of a file; empty lines and those that begin with # say nothing. raises: LoamError"""
    try:
        lines = [line.strip() for line in file.read_text().splitlines()]
    except (OSError, UnicodeDecodeError) as problem:
        raise LoamError(
            "--commands", file, f"cannot be read: {problem}", "name a text file, a command on each line"
        ) from None
    commands = [line for line in lines if line and not line.startswith("#")]
    if not commands:
        raise LoamError("--commands", file, "has no command", "write one on each line")
    return commands
