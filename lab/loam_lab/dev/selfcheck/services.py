"""Does `bench` give each service one answer?  The walk of docs/choosing-an-allocator.md for services with data, ten times.

    ./loam selfcheck services [--service redis,nginx] [--repeats 10] [--user NAME] [--blocks N] [--out DIR] [--json]

A service is a file of lab/services: its server, what fills it, its load.  Each walk is one `bench` in a folder and on a port
of its own.  --user starts all of it as that user, which root may ask for.  Promised are, for each service and user:

- each walk proves who served every run, and takes at most five minutes
- nine walks of ten advise the same allocator
- no allocator is shown to be faster than the baseline in one walk, and slower in another

A service whose programs are missing is named, with its packages.  Every walk is appended to DIR/walks.jsonl (results/services
without --out), and a further start goes on from there.  Two to five minutes a walk; wants a quiet machine.

Exit status 1 if a promise is broken, 3 while there are fewer than ten walks of a service; 0 otherwise.
"""

from __future__ import annotations

import json
import math
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from loam_lab.base import console, paths, subcommands
from loam_lab.base.errors import LoamError, unknown
from loam_lab.dev.selfcheck import exit_status

FOLDER = "lab/services"
ALLOCATORS = "glibc,jemalloc,tcmalloc"
REPEATS = 10
SAME_MIN, LONGEST_S = 0.9, 300.0


@dataclass(frozen=True)
class Service:
    """A file of lab/services. In its texts {port}, {port2}, {folder}, {services} and {python} stand for those of a walk.

    packages: of Debian; programs: that they hold; folders: where else than on PATH those may be, as patterns
    user: as whom root starts it, "" for root; stop: the signal that lets it end by itself, "" for the usual
    prepare: shell lines before a walk; files: by name, in the folder of a walk
    """

    name: str
    server: str
    load: str
    metric: str
    better: str
    programs: tuple[str, ...]
    packages: tuple[str, ...]
    prepare: str = ""
    fill: str = ""
    user: str = ""
    stop: str = ""
    folders: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Walk:
    """What one `bench` said. started_by: a user; told: the verdict of each rival of the baseline; problem: "" if it went well"""

    service: str
    started_by: str
    seconds: float
    cells: int = 0
    proven: int = 0
    allocator: str = ""
    told: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True)
class Row:
    """All walks of a service by one user. advised: how often each allocator was; opposite: told faster once and slower once

    kept: None while there are too few walks
    """

    service: str
    started_by: str
    walks: int
    longest_s: float
    proven: bool
    advised: Mapping[str, int]
    opposite: tuple[str, ...]
    problems: tuple[str, ...]
    kept: bool | None


def known(folder: Path) -> dict[str, Service]:
    """The services of a folder by name. raises: LoamError for a damaged file"""
    services = {}
    for file in sorted(folder.glob("*.toml")):
        try:
            content = tomllib.loads(file.read_text())
            lists = {key: tuple(content.get(key, ())) for key in ("programs", "packages", "folders")}
            services[file.stem] = Service(**{**content, **lists, "name": file.stem})
        except (tomllib.TOMLDecodeError, TypeError) as problem:
            raise LoamError(str(file), None, f"is no service: {problem}", "see the other files beside it") from None
    return services


def search_path(service: Service) -> str:
    """PATH with the folders of a service behind it."""
    more = [str(place) for pattern in service.folders for place in sorted(Path("/").glob(pattern.lstrip("/")))]
    return ":".join([os.environ.get("PATH", os.defpath), *more])


def missing(service: Service) -> list[str]:
    """The programs of a service that this machine has not."""
    return [name for name in service.programs if shutil.which(name, path=search_path(service)) is None]


def judge(walks: Iterable[Walk]) -> list[Row]:
    """A row for each service and user, in the order of their first walks."""
    groups: dict[tuple[str, str], list[Walk]] = {}
    for walk in walks:
        groups.setdefault((walk.service, walk.started_by), []).append(walk)
    return [_row(service, user, own) for (service, user), own in groups.items()]


def _row(service: str, user: str, walks: Sequence[Walk]) -> Row:
    advised = Counter(walk.allocator or "none" for walk in walks)
    faster = {name for walk in walks for name, verdict in walk.told.items() if verdict == "better"}
    slower = {name for walk in walks for name, verdict in walk.told.items() if verdict == "worse"}
    proven = all(walk.cells > 0 and walk.proven == walk.cells for walk in walks)
    problems = tuple(dict.fromkeys(walk.problem for walk in walks if walk.problem))
    longest_s = max(walk.seconds for walk in walks)
    opposite = tuple(sorted(faster & slower))
    good = proven and not problems and not opposite and longest_s <= LONGEST_S
    enough = len(walks) >= REPEATS
    same = max(advised.values()) >= math.ceil(SAME_MIN * len(walks))
    kept = False if not good else (same if enough else None)
    return Row(service, user, len(walks), longest_s, proven, dict(advised), opposite, problems, kept)


def walk(service: Service, user: str, allocators: str, blocks: int | None) -> Walk:
    """One `bench` of a service. user: who starts it, "" for who runs this; raises: LoamError if it cannot be prepared"""
    with tempfile.TemporaryDirectory(prefix="loam-service-", ignore_cleanup_errors=True) as scratch:
        folder = Path(scratch)
        port, port2 = _free_port(), _free_port()
        values = {
            "{port}": str(port), "{port2}": str(port2), "{folder}": scratch, "{services}": str(paths.root() / FOLDER),
            "{python}": sys.executable,
        }  # fmt: skip
        scripts = {"prepare.sh": service.prepare, "fill.sh": service.fill, "load.sh": service.load}
        for name, text in {**service.files, **scripts}.items():
            (folder / name).write_text(filled(text, values))
        folder.chmod(0o755)
        environment = {**os.environ, "PATH": search_path(service), "PYTHONPATH": str(paths.root() / "lab")}
        if user:
            environment["HOME"] = scratch
        # Who starts the service: of one that refuses root, root does it as another user.
        own = service.user if os.geteuid() == 0 and not user else ""
        if user or own:
            _give(folder, user or own)
        begun = time.monotonic()
        prepared = subprocess.run(
            [*_as(user or own), "sh", "-e", str(folder / "prepare.sh")], cwd=folder, env=environment,
            stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if prepared.returncode:
            raise LoamError(
                service.name, None, f"cannot be prepared: {prepared.stderr.strip()[-300:]}", "try it by hand"
            )
        server = shlex.join([*_as(own), *shlex.split(filled(service.server, values))])
        command = [
            sys.executable, "-P", "-m", "loam_lab.cli", "bench", "--server", server, "--ready", str(port),
            "--load", f"sh {folder}/load.sh", "--metric", service.metric, "--better", service.better,
            "--allocator", allocators, "--out", str(folder / "result"), "--json",
            *(["--fill", f"sh {folder}/fill.sh"] if service.fill else []), *(["--stop", service.stop] if service.stop else []),
            *(["--blocks", str(blocks)] if blocks else []),
        ]  # fmt: skip
        done = subprocess.run(
            [*_as(user), *command], cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=False
        )  # fmt: skip
    return walk_of(service.name, user or pwd.getpwuid(os.geteuid()).pw_name, time.monotonic() - begun, done.stdout)


def filled(text: str, values: Mapping[str, str]) -> str:
    """A text of a service with the values of a walk."""
    for name, value in values.items():
        text = text.replace(name, value)
    return text


def walk_of(service: str, user: str, seconds: float, printed: bytes) -> Walk:
    """What the JSON of `bench` says."""
    try:
        result: dict[str, Any] = json.loads(printed)
    except ValueError:
        return Walk(service, user, seconds, problem="bench printed no JSON")
    if "error" in result:
        return Walk(service, user, seconds, problem=str(result["error"]["message"]))
    cells = result["cells"]
    advice = result.get("recommendation") or {}
    verdicts = {}
    for cell in cells:
        judged = cell.get("processor_ratio") if advice.get("by") == "processor_s" else cell
        if cell["copy"] == 0 and judged is not None and cell["verdict"] != "baseline":
            verdicts[cell["factors"]["allocator"]] = judged["verdict"]
    good = sum(cell["state"] == "ok" for cell in cells)
    failures = [one.get("detail", "") for one in result.get("failures") or ()]
    return Walk(
        service, user, seconds, len(cells), good, advice.get("allocator", ""), verdicts, failures[0] if failures else ""
    )


def _as(user: str) -> list[str]:
    """The words in front of a command that start it as a user; none for who runs this."""
    if not user:
        return []
    return ["setpriv", f"--reuid={user}", f"--regid={_entry(user).pw_gid}", "--init-groups"]


def _entry(user: str) -> pwd.struct_passwd:
    try:
        return pwd.getpwnam(user)
    except KeyError:
        raise LoamError("--user", user, "is no user of this machine", "name another one, such as nobody") from None


def _check_that_it_runs_this(user: str) -> None:
    """raises: LoamError if the user may not start this Python, as where it lies in root's own folder"""
    # By a shell that is the user's already: setpriv still has root's rights when it starts what follows it.
    start = ["sh", "-c", 'exec "$0" -c ""', sys.executable]
    if subprocess.run([*_as(user), *start], capture_output=True, check=False).returncode:
        above = dict.fromkeys([*Path(sys.executable).parents, *Path(sys.executable).resolve().parents])
        closed = [str(folder) for folder in above if not folder.stat().st_mode & 0o001]
        remedy = f"let others enter it: chmod o+x {shlex.join(closed)}" if closed else "see who may read that file"
        raise LoamError("--user", user, f"may not start {sys.executable}", remedy)


def _give(folder: Path, user: str) -> None:
    entry = _entry(user)
    for place in (folder, *folder.rglob("*")):
        os.chown(place, entry.pw_uid, entry.pw_gid)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def read(file: Path) -> list[Walk]:
    """The walks so far; a line that a kill tore is left out."""
    walks = []
    for line in file.read_text().splitlines() if file.exists() else ():
        try:
            walks.append(Walk(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return walks


Ask = Callable[[Service, str, str, int | None], Walk]


def run(
    file: Path, services: Sequence[Service], user: str, repeats: int, allocators: str, blocks: int | None, one: Ask
) -> list[Walk]:  # fmt: skip
    """Go on until each service has so many walks by this user; returns all walks.

    One walk of each in turn, so that what changes on the machine with time meets all of them. Ctrl-C ends it, and nothing
    that was finished is lost
    """
    walks = read(file)
    by = user or pwd.getpwuid(os.geteuid()).pw_name
    done = Counter(walk.service for walk in walks if walk.started_by == by)
    for number in range(repeats):
        for service in services:
            if done[service.name] > number:
                continue
            console.note(f"{service.name}, started by {by}: walk {number + 1} of {repeats}")
            try:
                new = one(service, user, allocators, blocks)
            except LoamError as problem:
                new = Walk(service.name, by, 0.0, problem=problem.line())
            except KeyboardInterrupt:
                return walks
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a") as lines:
                lines.write(json.dumps(asdict(new)) + "\n")
            walks.append(new)
    return walks


def main(arguments: Sequence[str], one: Ask = walk) -> int:
    """Walk, then print a table as Markdown, or with --json as JSON."""
    parser = subcommands.Parser("selfcheck", "services", __doc__)
    parser.add_argument(
        "--service", default="", help="names, separated by commas; default: all whose programs are here"
    )
    parser.add_argument("--repeats", type=subcommands.count, default=REPEATS, help="walks of each, with those before")
    parser.add_argument("--user", default="", help="who starts the services; for root to name")
    parser.add_argument("--allocator", default=ALLOCATORS, help="the allocators of each walk")
    parser.add_argument("--blocks", type=subcommands.count, help="blocks of each walk, for a first look")
    parser.add_argument("--out", type=Path, help="folder of walks.jsonl; results/services without it")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    options = parser.parse_args(arguments)
    services = known(paths.root() / FOLDER)
    asked = options.service.split(",") if options.service else list(services)
    for name in asked:
        if name not in services:
            raise unknown("--service", name, services, "service")
    if options.user:
        _entry(options.user)
        if os.geteuid() != 0:
            raise LoamError("--user", options.user, "needs root", "leave it out: the services are then started by you")
        _check_that_it_runs_this(options.user)
    lacking = {name: missing(services[name]) for name in asked if missing(services[name])}
    for name, programs in lacking.items():
        packages = " ".join(services[name].packages)
        console.warn(f"{name} is left out: {', '.join(programs)} not found; as root: apt-get install {packages}")
    file = (options.out or paths.results_root() / "services") / "walks.jsonl"
    chosen = [services[name] for name in asked if name not in lacking]
    walks = run(file, chosen, options.user, options.repeats, options.allocator, options.blocks, one)
    rows = judge(walk for walk in walks if walk.service in asked)
    if options.json:
        print(json.dumps({"schema": 1, "rows": [asdict(row) for row in rows], "missing": lacking}, indent=1))
    else:
        _show(rows)
    return exit_status.of([*(row.kept for row in rows), *(None for _ in lacking)])


def _show(rows: Sequence[Row]) -> None:
    print("| service | started by | walks | longest | proven | advised | opposite | |")
    print("| --- | --- | ---: | ---: | --- | --- | --- | --- |")
    for row in rows:
        advised = ", ".join(f"{name} {count}" for name, count in sorted(row.advised.items(), key=lambda one: -one[1]))
        word = {True: "kept", False: "broken", None: "too few walks"}[row.kept]
        if row.problems:
            word += f": {row.problems[0]}"
        print(
            f"| {row.service} | {row.started_by} | {row.walks} | {row.longest_s:.0f} s | {'all' if row.proven else 'not all'} "
            f"| {advised} | {', '.join(row.opposite) or 'none'} | {word} |"
        )
