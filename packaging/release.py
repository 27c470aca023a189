"""Make all that a release consists of: .venv/bin/python packaging/release.py FOLDER [--twice] [--try SUITE]

FOLDER gets
  loam-VERSION.tar.gz                the sources, as git knows them
  loam_lab-VERSION-py3-none-any.whl  the lab, with the sources of what it builds
  *.deb                              the Debian packages
  loam-VERSION-site.tar.gz           the documentation, for any web server or none
  SHA256SUMS                         of all these: sha256sum -c SHA256SUMS

--twice      makes everything a second time, in another folder, and names the files that differ
--try SUITE  installs each in an empty Debian (bookworm or trixie), and starts it; needs root

What is committed is released. The status is 0, 1 if files differ or do not start, 2 if nothing could be made.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import build as packages

from loam_lab import __version__
from loam_lab.campaign.fleet import archive
from loam_lab.dev import roots

ROOT = packages.ROOT
SUMS = "SHA256SUMS"
NAME = f"loam-{__version__}"


def sources(out: Path) -> None:
    """The archive of the sources."""
    content = archive.packed(archive.names(), f"{NAME}/")
    (out / f"{NAME}.tar.gz").write_bytes(gzip.compress(content, mtime=0))


def debian(out: Path) -> None:
    """The Debian packages, without those that hold debugging symbols."""
    with tempfile.TemporaryDirectory(prefix="loam-debian-") as made:
        packages.debian(Path(made))
        for package in sorted(Path(made).glob("*.deb")):
            if "-dbgsym" not in package.name:
                shutil.copy2(package, out)


def site(out: Path) -> None:
    """The documentation in one archive."""
    with tempfile.TemporaryDirectory(prefix="loam-site-") as made:
        subprocess.run([ROOT / "loam", "site", "--out", made], check=True)
        files = sorted(str(file.relative_to(made)) for file in Path(made).rglob("*") if file.is_file())
        (out / f"{NAME}-site.tar.gz").write_bytes(
            gzip.compress(archive.tar(Path(made), files, f"{NAME}-site/"), mtime=0)
        )


# What makes the parts, the quickest first.
PARTS: Mapping[str, Callable[[Path], None]] = {
    "sources": sources, "wheel": packages.wheel, "site": site, "debian": debian,
}  # fmt: skip


def make(out: Path) -> dict[str, str]:
    """Make every part in a folder; returns: the digest of each file"""
    out.mkdir(parents=True, exist_ok=True)
    for name, part in PARTS.items():
        print(f"making {name} ...", flush=True)
        part(out)
    digests = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(out.iterdir()) if file.name != SUMS
    }
    (out / SUMS).write_text("".join(f"{digest}  {name}\n" for name, digest in digests.items()))
    return digests


def differing(first: Mapping[str, str], second: Mapping[str, str]) -> list[str]:
    """The names of files that are not the same in both."""
    return sorted(name for name in {*first, *second} if first.get(name) != second.get(name))


def attempts(wheel: str) -> dict[str, str]:
    """Shell commands that install a part in an empty Debian from /release, and start it, by the part's name."""
    return {
        "sums": "cd /release && sha256sum --quiet -c SHA256SUMS",
        "debian": "apt-get update -qq && apt-get install -qq -y --no-install-recommends /release/*.deb && loam --version",
        "wheel": f"python3 -m venv /wheel && /wheel/bin/pip install -q /release/{wheel} && /wheel/bin/loam --version",
        "sources": f"tar -xzf /release/{NAME}.tar.gz && ./{NAME}/loam --version",
        "site": f"tar -xzf /release/{NAME}-site.tar.gz && grep -q '<title>' {NAME}-site/index.html",
    }


def tried(out: Path, suite: str) -> dict[str, str]:
    """What went wrong with each part in an empty Debian; "" where nothing did. raises: roots.RootError"""
    problems = {}
    (wheel,) = (file.name for file in out.glob("*.whl"))
    with (
        tempfile.TemporaryDirectory(prefix="loam-root-", ignore_cleanup_errors=True) as folder,
        roots.made(Path(folder), suite) as root,
    ):
        shutil.copytree(out, root.folder / "release")
        for part, command in attempts(wheel).items():
            try:
                root.run("sh", "-c", command, seconds=1800)
                problems[part] = ""
            except (roots.RootError, subprocess.TimeoutExpired) as problem:
                problems[part] = str(problem)
    return problems


def check_committed() -> None:
    """Ends the program where the tree is not what is committed."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "status", "--porcelain"], capture_output=True, text=True, check=False
    )
    if done.returncode != 0 or done.stdout:
        what = done.stdout.splitlines()[0] if done.stdout else done.stderr.strip()
        _refuse(f"{ROOT}: is not what is committed ({what}); commit first")


def _refuse(why: str) -> None:
    print(f"error: {why}", file=sys.stderr)
    sys.exit(2)


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--try", dest="suite", choices=sorted(roots.SUITES))
    asked = parser.parse_args(arguments)
    out = asked.folder.absolute()
    if out.exists() and any(out.iterdir()):
        _refuse(f"{out}: is not empty; name a folder that is, or none that exists")
    if asked.suite and os.geteuid() != 0:
        _refuse("--try: chroot needs root; run it as root, or leave it out")
    check_committed()
    # What notes times notes that of the revision, so that the same revision gives the same files.
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(int(packages.made_at().timestamp())))
    wrong = False
    digests = make(out)
    if asked.twice:
        with tempfile.TemporaryDirectory(prefix="loam-again-") as again:
            names = differing(digests, make(Path(again) / "of a longer name"))
        print(f"made twice: {', '.join(names)} differ" if names else f"made twice: {len(digests)} files, all the same")
        wrong |= bool(names)
    if asked.suite:
        for part, problem in tried(out, asked.suite).items():
            print(f"{roots.SUITES[asked.suite]}: {part}: {problem or 'works'}")
            wrong |= bool(problem)
    print(f"{out}: {len(digests)} files and {SUMS}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
