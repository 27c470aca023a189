"""Build packages of this checkout: .venv/bin/python packaging/build.py wheel|source|debian FOLDER

wheel    loam_lab-VERSION-py3-none-any.whl
source   the tree of the Debian source package, ready for dpkg-buildpackage
debian   that tree, and the packages that dpkg-buildpackage makes of it, beside it
"""

from __future__ import annotations

import email.utils
import hashlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "lab"))

import typer.main  # noqa: E402

from loam_lab import __version__  # noqa: E402
from loam_lab.campaign.fleet import archive  # noqa: E402
from loam_lab.cli import main as cli  # noqa: E402
from loam_lab.presenting.site import manual  # noqa: E402

MAINTAINER = "The Loam developers <loam@localhost>"
# The project has no mail of its own yet; everything else that lintian calls an error is one.
OVERRIDES = ("bogus-mail-host", "bogus-mail-host-in-debian-changelog")
TOOLS = {"dpkg-buildpackage": "dpkg-dev", "dh": "debhelper", "cmake": "cmake", "ninja": "ninja-build", "g++": "g++"}


def wheel(out: Path) -> None:
    """Build the wheel from nothing but the checkout's files."""
    shutil.rmtree(ROOT / "build/lib", ignore_errors=True)  # setuptools would put files of earlier builds into it
    subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(out), str(ROOT)], check=True)


def changelog() -> str:
    """debian/changelog: what CHANGELOG.md says of this version, at the time of the revision."""
    text = (ROOT / "CHANGELOG.md").read_text()
    section = re.search(rf"^## {re.escape(__version__)}\b.*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    if section is None:
        sys.exit(
            f"error: CHANGELOG.md: has no section {__version__}, the version of lab/loam_lab/__init__.py (add one)"
        )
    points = [" ".join(point.split()) for point in re.findall(r"^- (.*(?:\n  .*)*)", section[1], re.MULTILINE)]
    lines = [textwrap.fill(point, 76, initial_indent="  * ", subsequent_indent="    ") for point in points]
    head, tail = (
        f"loam ({__version__}) unstable; urgency=medium",
        f" -- {MAINTAINER}  {email.utils.format_datetime(made_at())}",
    )
    return "\n\n".join([head, "\n".join(lines), tail]) + "\n"


def made_at() -> datetime:
    """When the revision was made; now where git does not say."""
    if "SOURCE_DATE_EPOCH" in os.environ:
        return datetime.fromtimestamp(float(os.environ["SOURCE_DATE_EPOCH"]), UTC)
    command = ["git", "-C", str(ROOT), "show", "-s", "--format=%ct", "HEAD"]
    seconds = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return datetime.fromtimestamp(float(seconds), UTC) if seconds.isdigit() else datetime.now(UTC)


def source(out: Path) -> Path:
    """The tree of the source package: what git knows, debian/, and what is generated; returns: the tree"""
    tree = out / f"loam-{__version__}"
    if tree.exists():
        sys.exit(f"error: {tree}: is there already (name an empty folder)")
    tree.mkdir()
    names = archive.names()
    for name in names:
        file = tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, file, follow_symlinks=False)
    debian = tree / "debian"
    shutil.copytree(ROOT / "packaging/debian", debian)
    (debian / "changelog").write_text(changelog())
    for package in re.findall(r"^Package: (\S+)", (debian / "control").read_text(), re.MULTILINE):
        (debian / f"{package}.lintian-overrides").write_text("".join(f"{package}: {tag}\n" for tag in OVERRIDES))
    (debian / "bin").mkdir()
    shutil.copy2(ROOT / "packaging/loam", debian / "bin/loam")  # debian/loam is the package's own folder
    content = archive.packed([name for name in names if not name.startswith("docs/")])
    (debian / "sources.tar").write_bytes(content)
    (debian / "sources.sha256").write_text(hashlib.sha256(content).hexdigest()[:32] + "\n")
    command = typer.main.get_command(cli.app)
    manual.write_pages(command, debian / "manual" / manual.MAN)
    manual.write_completions(debian / "manual")
    return tree


def debian(out: Path) -> None:
    """Build the packages without signing them."""
    if missing := [package for program, package in TOOLS.items() if shutil.which(program) is None]:
        sys.exit(f"error: {missing[0]}: is not installed (as root: apt-get install {' '.join(missing)})")
    tree = source(out)
    environment = {**os.environ, "DEB_BUILD_OPTIONS": f"nocheck parallel={os.cpu_count() or 1}"}
    # Dependencies are checked by name above: cmake and ninja may be there without their packages.
    subprocess.run(["dpkg-buildpackage", "-us", "-uc", "-b", "-d"], cwd=tree, env=environment, check=True)


if __name__ == "__main__":
    kinds = {"wheel": wheel, "source": source, "debian": debian}
    if len(sys.argv) != 3 or sys.argv[1] not in kinds:
        sys.exit(__doc__)
    folder = Path(sys.argv[2]).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    kinds[sys.argv[1]](folder)
