"""Tools that read something and write something: compilers, archives, histories, pages, queries."""

from __future__ import annotations

import hashlib
import random
import re
from pathlib import Path

from loam_lab.base import paths
from loam_lab.subjects.programs.running import Program, Session

# Of the commits that the git run makes: a name and a time are part of their hashes.
_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "loam"), ("EMAIL", "loam@example.org"), ("DATE", "1700000000 +0000"))
}


def _awk(session: Session) -> bytes:
    return session.output("awk", "-f", session.script("strings.awk"), given=f"{session.amount}\n".encode())


def _sort(session: Session) -> bytes:
    """Lines in an order that its small buffer forces through temporary files, merged by two threads."""
    numbers = random.Random(1)
    lines = "".join(f"{numbers.random():.9f} {'x' * numbers.randrange(60)}\n" for _ in range(session.amount))
    return session.output("sort", "-S", "1M", "--parallel=2", "-k2,2", "-k1,1n", given=lines.encode())


def _tar(session: Session) -> bytes:
    """An archive of the runtime's sources, compressed and unpacked again."""
    made = b""
    for _ in range(session.amount):
        made = session.output(
            "tar", "-c", "-z", "-f", "-", "--mtime=@0", "--sort=name", "--owner=0", "--group=0", "-C", paths.root(), "runtime"
        )  # fmt: skip
        listed = session.output("tar", "-t", "-v", "-z", "-f", "-", given=made)
    return hashlib.sha256(made).hexdigest().encode() + b"\n" + listed


def _gcc(session: Session) -> bytes:
    """Assembly of generated C: functions that the optimiser has to look at, each calling the one before."""
    functions = ["static int f0(int x) { return x; }"]
    functions += [
        f"static int f{n}(int x) {{ int s[{n % 13 + 2}]; for (int i = 0; i < {n % 13 + 2}; ++i) s[i] = f{n - 1}(x + i) * {n};\n"
        f"  for (int i = 1; i < {n % 13 + 2}; ++i) if (s[i] > x) s[0] ^= s[i] << (i & 7); return s[0]; }}"
        for n in range(1, session.amount)
    ]
    source = "\n".join([*functions, f"int main(int c, char** v) {{ (void)v; return f{session.amount - 1}(c); }}\n"])
    return session.output("gcc", "-O2", "-S", "-x", "c", "-o", "-", "-", given=source.encode(), timeout_s=300)


def _gxx(session: Session) -> bytes:
    sources = sorted((paths.root() / "runtime/heap").glob("*.cpp"))[: session.amount]
    return b"".join(
        session.output("g++", "-std=c++20", "-O1", "-S", "-I", paths.root(), "-o", "-", source, timeout_s=300)
        for source in sources
    )


def _git(session: Session) -> bytes:
    """A history of commits on two branches, merged, packed by threads, cloned and checked."""

    def git(*words: str | Path) -> bytes:
        return session.output("git", "-c", "pack.threads=2", *words, environment=_AUTHOR)

    git("init", "-q", "-b", "main", "here")
    words = random.Random(1)
    for n in range(session.amount):
        if n == session.amount // 2:
            git("-C", "here", "checkout", "-q", "-b", "side", "HEAD~2")
        # Three files that change a little each time (so that packing finds deltas), and one new one.
        for name in ("a", "b", "c"):
            text = [f"{line} {words.random() if words.random() < 0.01 else 0}\n" for line in range(2000)]
            (session.folder / "here" / f"{name}{n >= session.amount // 2}").write_text("".join(text))
        (session.folder / "here" / f"new{n}").write_bytes(words.randbytes(5000))
        git("-C", "here", "add", ".")
        git("-C", "here", "commit", "-q", "-m", f"commit {n}")
    git("-C", "here", "checkout", "-q", "main")
    git("-C", "here", "merge", "-q", "-m", "merge", "side")
    git("-C", "here", "repack", "-q", "-a", "-d", "-f", "--depth=20", "--window=20")
    git("clone", "-q", "--no-local", "here", "there")
    git("-C", "there", "fsck", "--strict")
    return git("-C", "there", "rev-parse", "HEAD") + git("-C", "there", "log", "--stat", "-p", "--topo-order")


def _sqlite(session: Session) -> bytes:
    script = (paths.root() / "lab/programs/queries.sql").read_text().replace(":rows", str(session.amount))
    return session.output("sqlite3", session.folder / "base", given=script.encode(), timeout_s=600)


def _ghostscript(session: Session) -> bytes:
    device = ("-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=ppmraw", f"-r{session.amount}", "-dTextAlphaBits=4")
    return session.output("gs", *device, "-sOutputFile=-", session.script("page.ps"), timeout_s=300)


def _stress(session: Session) -> bytes:
    """Its own verdict on blocks that it filled and verified, in one thread a process and in three.

    How many operations it did is no part of it: its processes count together and stop a little early or late.
    """
    verdicts = b""
    for threads in ("0", "2"):
        output = session.output(
            "stress-ng", "--malloc", "2", "--malloc-ops", str(session.amount), "--malloc-pthreads", threads,
            "--malloc-touch", "--verify", "--temp-path", session.folder, timeout_s=1800, stderr=True,
        )  # fmt: skip
        verdicts += b"\n".join(re.findall(rb"\w*successful run|\b\d+ failed|fail: .*", output)) + b"\n"
    return verdicts


PROGRAMS = (
    Program("awk", ("mawk",), "a sum over strings", _awk, 100_000, 10_000_000, ("awk", "BEGIN { print 1 }")),
    Program("sort", (), "the sorted lines", _sort, 60_000, 2_000_000, ("sort", "--version")),
    Program("tar", ("tar",), "a compressed archive and its list", _tar, 1, 20, ("tar", "--version")),
    Program("gcc", ("gcc",), "assembly of generated C", _gcc, 60, 600, ("gcc", "--version")),
    Program("gxx", ("g++",), "assembly of the heap", _gxx, 1, 20, ("g++", "--version")),
    Program("git", ("git",), "commits after a merge, packing and a clone", _git, 12, 200, ("git", "--version")),
    Program("sqlite3", ("sqlite3",), "answers to queries", _sqlite, 20_000, 1_000_000, ("sqlite3", "--version")),
    Program("gs", ("ghostscript",), "a drawn page, byte by byte", _ghostscript, 100, 400, ("gs", "--version")),
    Program(
        "stress-ng", ("stress-ng",), "its verification of blocks", _stress, 100_000, 2_000_000, ("stress-ng", "--version")
    ),
)  # fmt: skip
