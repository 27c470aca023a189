"""One run of a program under an allocator, in a folder of its own that is gone afterwards, with all that it started.

A Program is what is run; a Session is one run: it starts commands and servers and remembers the largest process.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import resource
import select
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from multiprocessing import Pipe, get_context
from pathlib import Path
from typing import IO

from loam_lab import console, paths
from loam_lab.allocators import registry
from loam_lab.errors import LoamError
from loam_lab.setup import debian

# What makes a run repeatable, and what makes Python ask malloc instead of its own pools.
ENVIRONMENT = {
    "LANG": "C.UTF-8", "TZ": "UTC", "PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0", "PERL_HASH_SEED": "0",
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
}  # fmt: skip
STOPPING_S = 30.0


class Failed(Exception):
    """A command ended with a status, a signal or a time limit that it should not have; str() says which, and its last words."""


@dataclass(frozen=True)
class Program:
    """A program and the work that it does.

    packages: Debian's, as in setup.debian; compares: what two runs are compared by
    work: does the work and returns what it came to; short, long: how much of it, in a unit of the program's own
    starts: a command that starts the program and ends at once
    """

    name: str
    packages: tuple[str, ...]
    compares: str
    work: Callable[[Session], bytes]
    short: int
    long: int
    starts: tuple[str, ...]


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    peak_bytes: resident, of its largest process; None where that was smaller than this one
    cpu_s: processor time of all that it started and waited for, in user and kernel mode
    """

    result: bytes
    peak_bytes: int | None
    cpu_s: float


class Session:
    """One run: a folder, an environment, and how much to do."""

    def __init__(self, folder: Path, environment: dict[str, str], amount: int) -> None:
        self.folder = folder
        self.environment = environment
        self.amount = amount
        self.peak_bytes: int | None = None
        self.cpu_s = 0.0
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

    def output(
        self, *command: str | Path, given: bytes = b"", timeout_s: float = 120.0, may_fail: bool = False,
        environment: dict[str, str] | None = None, said: bool = False,
    ) -> bytes:  # fmt: skip
        """What a command writes to standard output.

        given: its standard input; may_fail: whether a status other than 0 is an answer too
        environment: variables on top; said: standard error instead
        raises: Failed if it ends badly or not in time
        """
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            source.write(given)
            source.seek(0)
            own_peak = _own_peak_bytes()
            process = self._start(command, source, out, err, {**self.environment, **(environment or {})})
            in_time = False
            try:
                in_time = _ended(process.pid, timeout_s)
            finally:
                status = self._reap(process, own_peak)
            err.seek(0)
            words = err.read()
            if not in_time or status < 0 or (status > 0 and not may_fail):
                how = f"ended with {status}" if in_time else f"did not end within {timeout_s:.0f} s"
                tail = words[-2000:].decode(errors="replace")
                raise Failed(f"{' '.join(map(str, command))[:300]}: {how}\n{tail}")
            out.seek(0)
            return words if said else out.read()

    @contextlib.contextmanager
    def server(self, *command: str | Path, stop: signal.Signals = signal.SIGTERM) -> Iterator[None]:
        """A server for as long as the block lasts; its standard output and error go to one file.

        stop: what asks it to end; raises: Failed if it ends otherwise than by that, with status 0
        """
        with tempfile.TemporaryFile() as log:
            own_peak = _own_peak_bytes()
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
        user, group = (self._account.pw_uid, self._account.pw_gid) if self._account else (None, None)
        return subprocess.Popen(
            [str(word) for word in command], stdin=source, stdout=out, stderr=err, cwd=self.folder, env=environment,
            # A shell's background command ignores the interrupt, and what it starts would inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            start_new_session=True, user=user, group=group, extra_groups=[] if self._account else None,
        )  # fmt: skip

    def _reap(self, process: subprocess.Popen[bytes], own_peak: int) -> int:
        """End what is left of the process's group, and return its status: negative for a signal."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # the leader is not reaped yet, so the number is still the group's
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_s += used.ru_utime + used.ru_stime
        peak = used.ru_maxrss * 1024
        # Until it executes the program, a child runs in this process's memory, and Linux counts that as well.
        if peak > own_peak:
            self.peak_bytes = max(peak, self.peak_bytes or 0)
        return process.returncode


def _own_peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _ended(pid: int, timeout_s: float) -> bool:
    handle = os.pidfd_open(pid)
    try:
        return bool(select.select([handle], [], [], timeout_s)[0])
    finally:
        os.close(handle)


@contextlib.contextmanager
def session(allocator: str, amount: int, environment: Mapping[str, str] | None = None) -> Iterator[Session]:
    """A session under a registered allocator, in a folder with a short path, since sockets lie in it.

    allocator: a name, with settings; environment: in place of what ENVIRONMENT says
    raises: LoamError if the allocator is unknown or not built
    """
    loaded = registry.load(allocator)
    folder = Path(tempfile.mkdtemp(prefix="loam-"))
    try:
        folder.chmod(0o755)
        own = {
            **ENVIRONMENT, **(environment or {}), "HOME": str(folder), "TMPDIR": str(folder), **loaded.environment
        }  # fmt: skip
        if loaded.libraries:  # copies, since another user may not be able to read the checkout
            own["LD_PRELOAD"] = ":".join(
                str(shutil.copy(library, folder / Path(library).name)) for library in loaded.libraries
            )
        yield Session(folder, own, amount)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def lacking(program: Program) -> list[str]:
    """The program's Debian packages that are not on this machine."""
    known = {package.name: package for package in debian.PACKAGES}
    return [name for name in program.packages if not debian.present(known[name])]


def run(program: Program, allocator: str, amount: int, environment: Mapping[str, str] | None = None) -> Outcome:
    """Run a program under an allocator.

    environment: as for session()
    raises: Failed if a command of it ends badly; LoamError if the program is not installed
    """
    absent = lacking(program)
    if absent:
        raise LoamError(program.name, None, "not installed", f"{' '.join(absent)}: ./loam setup --programs")
    with session(allocator, amount, environment) as here:
        result = program.work(here)
        return Outcome(result, here.peak_bytes, here.cpu_s)


def run_apart(
    program: Program, allocator: str, amount: int, environment: Mapping[str, str] | None = None
) -> Outcome | None:
    """The outcome with a hash for its result, or None after the reason was printed.

    In a process of its own: inputs and results stay in none that a later run would be counted from.
    """
    console.note(f"{program.name} under {allocator} ...")
    receiver, sender = Pipe(duplex=False)

    def work() -> None:
        try:
            outcome = run(program, allocator, amount, environment)
            sender.send(replace(outcome, result=hashlib.sha256(outcome.result).digest()))
        except Failed as problem:
            console.note(str(problem))
            sender.send(None)

    process = get_context("fork").Process(target=work)
    process.start()
    sender.close()
    try:
        found: Outcome | None = receiver.recv()
    except EOFError:  # it ended without a word: its traceback is on standard error
        found = None
    process.join()
    return found


def start(program: Program, allocator: str, environment: dict[str, str]) -> str:
    """Start a program that ends at once, and return what it says on standard error."""
    with session(allocator, 0) as here:
        return here.output(*program.starts, environment=environment, said=True).decode()
