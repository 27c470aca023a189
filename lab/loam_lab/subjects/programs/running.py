"""One run of a program, in a folder of its own that is gone afterwards, with all that it started.

A Program is what is run; a Session is one run: it starts commands and servers under the allocator whose variables it was
given, and adds up what their processes used.  This process itself runs under no other allocator than the lab.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from loam_lab.base import paths, processes
from loam_lab.model.protocol import PROFILE
from loam_lab.setup import debian
from loam_lab.subjects.allocators import preflight

# What makes a run repeatable, and what makes Python ask malloc instead of its own pools.
ENVIRONMENT = {
    "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}  # fmt: skip
STOPPING_S = 30.0
# Where the processes say who serves them; see loam_lab.subjects.allocators.probe.
PROOF = "LOAM_PROBE"


class Failed(Exception):
    """A command ended with a status, a signal or a time limit that it should not have; str() says which, and its last words."""


@dataclass(frozen=True)
class Program:
    """A program and the work that it does.

    packages: Debian's, as in setup.debian; compares: what two runs are compared by
    work: does the work and returns its result; short, long: how much of it, in a unit of the program's own
    starts: a command that starts the program and ends at once; its first word is the program itself
    missing: what it needs besides packages and is not here, with the command that brings it, as "what: how"; "" for nothing
    """

    name: str
    packages: tuple[str, ...]
    compares: str
    work: Callable[[Session], bytes]
    short: int
    long: int
    starts: tuple[str, ...]
    missing: Callable[[], str] = lambda: ""


@dataclass
class Used(processes.Used):
    """wall_s: while commands ran, servers beside them

    migrations: how often the main threads of the commands were moved to another processor; None where the kernel is silent
    """

    migrations: int | None = 0


class Session:
    """One run: a folder, an environment, and how much to do."""

    def __init__(self, folder: Path, environment: dict[str, str], amount: int) -> None:
        self.folder = folder
        self.environment = environment
        self.amount = amount
        self.used = Used()
        self._copies: dict[str, str] = {}
        self._proof: tuple[Path, Path] | None = None
        self._started: list[subprocess.Popen[bytes]] = []
        self._account: pwd.struct_passwd | None = None

    def script(self, name: str) -> str:
        """The path of a file of lab/programs, copied to where every user may read it."""
        return str(shutil.copy(paths.root() / "lab/programs" / name, self.folder))

    def give_up_root(self) -> None:
        """Start what follows as nobody, if this is root: some servers refuse root."""
        if os.geteuid() != 0:
            return
        self._account = pwd.getpwnam("nobody")
        os.chown(self.folder, self._account.pw_uid, self._account.pw_gid)
        # Another user may not be able to read the checkout: preloaded libraries are copied.
        for library in filter(None, self.environment.get("LD_PRELOAD", "").split(":")):
            self._copies[str(shutil.copy(library, self.folder / Path(library).name))] = library
        if self._copies:
            self.environment["LD_PRELOAD"] = ":".join(self._copies)

    def report_to(self, proof: Path) -> None:
        """Let processes say who serves them in a file that every user may write to, and hand it on at the end.

        proof: where it is wanted; a library that was copied is named there by the path of its original
        """
        own = self.folder / "proof"
        own.touch()
        own.chmod(0o666)
        self.environment[PROOF] = str(own)
        self._proof = own, proof

    def close(self) -> None:
        """Hand on what processes said."""
        if self._proof is not None:
            own, wanted = self._proof
            proof = own.read_bytes()
            for copy, library in self._copies.items():
                proof = proof.replace(f'"{copy}"'.encode(), f'"{library}"'.encode())
            wanted.write_bytes(proof)

    def output(
        self, *command: str | Path, given: bytes = b"", timeout_s: float = 120.0, may_fail: bool = False,
        environment: dict[str, str] | None = None, stderr: bool = False,
    ) -> bytes:  # fmt: skip
        """What a command writes to standard output.

        given: its standard input; may_fail: whether a status other than 0 is an answer too
        environment: variables on top; stderr: that stream instead
        raises: Failed if it ends badly or not in time
        """
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            source.write(given)
            source.seek(0)
            own_peak = processes.own_peak_bytes()
            began = time.monotonic()
            process = self._start(command, source, out, err, {**self.environment, **(environment or {})})
            in_time = False
            try:
                in_time = _ended(process.pid, timeout_s)
            finally:
                self.used.wall_s += time.monotonic() - began
                status = self._reap(process, own_peak)
            err.seek(0)
            words = err.read()
            if not in_time or status < 0 or (status > 0 and not may_fail):
                how = f"ended with {status}" if in_time else f"did not end within {timeout_s:.0f} s"
                tail = words[-2000:].decode(errors="replace")
                raise Failed(f"{' '.join(map(str, command))[:300]}: {how}\n{tail}")
            out.seek(0)
            return words if stderr else out.read()

    @contextlib.contextmanager
    def server(self, *command: str | Path, stop: signal.Signals = signal.SIGTERM) -> Iterator[None]:
        """A server for as long as the block lasts; its standard output and error go to one file.

        stop: what asks it to end; raises: Failed if it ends otherwise than by that, with status 0
        """
        with tempfile.TemporaryFile() as log:
            own_peak = processes.own_peak_bytes()
            process = self._start(command, subprocess.DEVNULL, log, log, self.environment)
            in_time, status = False, 0
            try:
                yield
            finally:
                early = _ended(process.pid, 0.0)
                if not early:
                    process.send_signal(stop)
                    in_time = _ended(process.pid, STOPPING_S)
                status = self._reap(process, own_peak)
                if not in_time or status != 0:
                    log.seek(0)
                    how = "too early" if early else f"after it was asked to, within {STOPPING_S:.0f} s: {in_time}"
                    tail = log.read()[-2000:].decode(errors="replace")
                    raise Failed(f"{command[0]}: ended with {status}, {how}\n{tail}")

    def _start(
        self, command: Sequence[str | Path], source: int | IO[bytes], out: IO[bytes], err: IO[bytes],
        environment: dict[str, str],
    ) -> subprocess.Popen[bytes]:  # fmt: skip
        environment = _served(str(command[0]), environment)
        user, group = (self._account.pw_uid, self._account.pw_gid) if self._account else (None, None)
        # Asked to end just now, this process would not know yet what it has started.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        try:
            process = subprocess.Popen(
                [str(word) for word in command], stdin=source, stdout=out, stderr=err, cwd=self.folder, env=environment,
                preexec_fn=_as_by_a_shell, start_new_session=True, user=user, group=group,
                extra_groups=[] if self._account else None,
            )  # fmt: skip
            self._started.append(process)
            return process
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def end_all(self) -> None:
        """End what is still running."""
        for process in list(self._started):
            self._reap(process, processes.own_peak_bytes())

    def _reap(self, process: subprocess.Popen[bytes], own_peak: int) -> int:
        """End what is left of the process's group, and return its status: negative for a signal."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the leader is not reaped yet, so the number is still the group's
        delay_s = processes.run_delay_s(process.pid)
        moved = migrations(process.pid)
        self.used.migrations = None if self.used.migrations is None or moved is None else self.used.migrations + moved
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self._started.remove(process)
        self.used.add(used, delay_s, own_peak)
        return process.returncode


def _served(program: str, environment: dict[str, str]) -> dict[str, str]:
    """The environment of a program that libc is to serve: one that is linked with another allocator gets libc before it."""
    own = 1 + (PROFILE in environment)  # the probe, and what counts in front
    if PROOF not in environment or len(environment.get("LD_PRELOAD", "").split(":")) != own:
        return environment  # not measured, or an allocator is preloaded
    library = preflight.linked_allocator(shutil.which(program, path=environment["PATH"]) or program)
    if library is None:
        return environment
    return {**environment, "LD_PRELOAD": ":".join([environment["LD_PRELOAD"], *preflight.before(library)])}


def _as_by_a_shell() -> None:
    """In the child: a shell's background command ignores the interrupt, and what it starts would inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _ended(pid: int, timeout_s: float) -> bool:
    handle = os.pidfd_open(pid)
    try:
        return bool(select.select([handle], [], [], timeout_s)[0])
    finally:
        os.close(handle)


def migrations(pid: int) -> int | None:
    """How often the main thread of a process, not yet reaped, was moved; None where the kernel does not say."""
    try:
        lines = Path(f"/proc/{pid}/sched").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.rpartition(":")[2]) for line in lines if line.startswith("se.nr_migrations")), None)


@contextlib.contextmanager
def session(
    allocator: Mapping[str, str], amount: int, environment: Mapping[str, str] | None = None
) -> Iterator[Session]:
    """A session under an allocator, in a folder with a short path, since sockets lie in it.

    allocator: the variables that put it into a process; environment: in place of what ENVIRONMENT says
    """
    folder = Path(tempfile.mkdtemp(prefix="loam-"))
    try:
        folder.chmod(0o755)
        here = Session(
            folder,
            {**ENVIRONMENT, **(environment or {}), "HOME": str(folder), "TMPDIR": str(folder), **allocator},
            amount,
        )
        if PROOF in allocator:
            here.report_to(Path(allocator[PROOF]))
        try:
            yield here
        finally:
            here.end_all()
        here.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compiled(name: str) -> str:
    """The path of a program that is compiled from lab/programs; raises: Failed if it is not"""
    path = paths.load_paths()["libraries"].get(f"program-{name}")
    if path is None or not Path(path).is_file():
        raise Failed(f"{name} is not compiled: ./loam setup --programs, then ./loam setup")
    return str(path)


def lacks(program: Program) -> str:
    """What a program needs and this machine lacks, with the command that brings it, as "what: how"; "" for nothing."""
    known = {package.name: package for package in debian.PACKAGES}
    absent = [name for name in program.packages if not debian.present(known[name])]
    return f"Debian's {' '.join(absent)}: ./loam setup --programs" if absent else program.missing()
