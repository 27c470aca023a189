"""What `bench` measures where a command alone does not say it: a server under a load, or commands with work around them.

A Job is plain data. The lab writes it as JSON, and loam_lab.commands.bench.driver, which starts the processes, reads it.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields

from loam_lab.base.errors import LoamError
from loam_lab.commands.bench import cgroups

# The name of the synchronisation in the records: there is none, another program does the work.
SYNC = "driver"
COMMAND = "command"
SAME_OUTPUT = "same-output"
# Of a load that names its value nothing.
METRIC = "metric"
READY_S = 90.0
_RATES = re.compile(r"per.?sec\w*|per.?s\b|/s(?:ec)?\b|rps|ops|qps|tps|throughput|rate", re.IGNORECASE)
_TIMES = re.compile(r"latency|time|elapsed|duration|\bp[59]\d|msec|usec|\bms\b|\bus\b|seconds?", re.IGNORECASE)


@dataclass(frozen=True)
class Job:
    """What one run does.

    commands: shell words by text, one of them per run; empty for a server
    server, load: shell words; ready: a port of the loopback, or a pattern in what the server writes
    metric: a pattern in what the load prints; better: "higher" or "lower" of its value
    prepare, cleanup: shell lines before and after a run, not measured; fill: one against each server that is ready, before
    its loads; check: a shell line that must succeed after a run
    same_output: whether every run must write the same; warmup: loads that do not count, against each started server
    limits: of resources by name, as resource.setrlimit has them; group: limits of a control group, by file
    timeout_s: of the command or the load; ignore_failure: whether a command may end with another status than 0
    stop: name of the signal that lets a server end by itself, "" for TERM, or INT where it catches only that
    """

    commands: dict[str, list[str]]
    server: list[str]
    ready: str
    load: list[str]
    metric: str
    better: str
    prepare: str
    cleanup: str
    check: str
    same_output: bool
    warmup: int
    limits: dict[str, int]
    group: dict[str, str]
    timeout_s: float
    ready_s: float = READY_S
    ignore_failure: bool = False
    fill: str = ""
    stop: str = ""

    @property
    def serves(self) -> bool:
        """Whether a server is measured."""
        return bool(self.server)

    @property
    def text(self) -> str:
        """What is measured, as a person would type it."""
        return shlex.join(self.server) if self.serves else "; ".join(self.commands)

    @property
    def programs(self) -> list[list[str]]:
        """The command lines that run under the allocator."""
        return [self.server] if self.serves else list(self.commands.values())

    def as_json(self) -> str:
        """The inverse of read()."""
        return json.dumps(asdict(self))

    @staticmethod
    def read(text: str) -> Job:
        """A job from what as_json() wrote."""
        content = json.loads(text)
        return Job(**{field.name: content[field.name] for field in fields(Job)})

    def options(self) -> list[str]:
        """The options of bench that ask for this job."""
        arguments: list[str] = []
        if self.serves:
            arguments += ["--server", shlex.join(self.server), "--ready", self.ready, "--load", shlex.join(self.load)]
            arguments += ["--metric", self.metric, "--better", self.better]
            arguments += ["--stop", self.stop] if self.stop else []
        for text in self.commands:
            arguments += ["--command", text]
        lines = {"--prepare": self.prepare, "--fill": self.fill, "--cleanup": self.cleanup, "--check": self.check}
        for name, value in lines.items():
            arguments += [name, value] if value else []
        arguments += ["--check", SAME_OUTPUT] if self.same_output else []
        arguments += ["--warmup", str(self.warmup)] if self.warmup else []
        arguments += ["--ignore-failure"] if self.ignore_failure else []
        for name, number in self.limits.items():
            arguments += ["--limit", f"{name.removeprefix('RLIMIT_').lower()}={number}"]
        for file, value in self.group.items():
            arguments += ["--limit", f"{file}={value}"]
        return arguments

    def named(self) -> str:
        """The name of the load's value: the pattern's first named group."""
        return next(iter(re.compile(self.metric).groupindex), METRIC) if self.metric else ""


def direction(metric: str, better: str | None) -> str:
    """Whether more or less of a metric is better: as asked for, else as its pattern says.

    raises: LoamError where neither tells, or the pattern is none or has no group for a number
    """
    try:
        pattern = re.compile(metric)
    except re.error as problem:
        raise LoamError("--metric", metric, f"is no regular expression: {problem}", EXAMPLE) from None
    if pattern.groups != 1 and "(?P<" not in metric:
        raise LoamError("--metric", metric, f"has {pattern.groups} groups; one must hold the number", EXAMPLE)
    if better is not None:
        return better
    rate, time = bool(_RATES.search(metric)), bool(_TIMES.search(_RATES.sub("", metric)))
    if rate == time:
        raise LoamError("--metric", metric, "does not say whether more is better", "add --better higher, or lower")
    return "higher" if rate else "lower"


EXAMPLE = r"""as in --metric '([\d.]+) requests per second'"""


def words(option: str, text: str) -> list[str]:
    """A command line cut into words.

    raises: LoamError if a quote is not closed, or nothing is there
    """
    try:
        parts = shlex.split(text)
    except ValueError as problem:
        raise LoamError(option, text, f"is no command line: {problem}", "close the quote") from None
    if not parts:
        raise LoamError(option, text, "is empty", "name a program and its arguments")
    return parts


def joined(command: Sequence[str]) -> str:
    """Words as a shell reads them."""
    return shlex.join(command)


def resources() -> dict[str, str]:
    """The names of limits of a process, as --limit takes them, each with that of the module resource."""
    import resource

    return {name[7:].lower(): name for name in dir(resource) if name.startswith("RLIMIT_")}


def signal_named(name: str) -> str:
    """A signal by its name, with or without SIG in front; raises: LoamError if there is none"""
    plain = name.upper().removeprefix("SIG")
    if f"SIG{plain}" not in signal.Signals.__members__:
        raise LoamError("--stop", name, "is no signal", "as in --stop USR1")
    return plain


def limits(given: Sequence[str]) -> tuple[dict[str, int], dict[str, str]]:
    """Limits of resources from NAME=NUMBER with an optional K, M or G, and those of a control group, whose names have a dot.

    raises: LoamError for a name that resource does not have, or what is no number
    """
    known = resources()
    by_resource: dict[str, int] = {}
    group: dict[str, str] = {}
    for item in given:
        name, _, value = item.partition("=")
        if "." in name:
            group[name] = cgroups.parse(name, value)
            continue
        if name not in known:
            limit = f"is none of {', '.join(sorted(known))}, nor a file of a control group, as memory.max"
            raise LoamError("--limit", item, limit, "as in --limit as=4G")
        matched = re.fullmatch(r"(\d+)([KMG]?)", value)
        if matched is None:
            raise LoamError("--limit", item, "needs a whole number, with K, M or G for bytes", "as in --limit as=4G")
        by_resource[known[name]] = int(matched[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[matched[2]]
    return by_resource, group
