"""The files of one commit of a public git repository, for allocators that no registry has.

They come from the repository itself where the network has it, or from a folder that the user names: LOAM_SOURCES holds a folder
of the repository's name with the files of that commit. Either way their digest has to be the one of the recipe.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from loam_lab.base import console
from loam_lab.base.errors import LoamError
from loam_lab.subjects.allocators import recipe
from loam_lab.subjects.allocators.recipe import Module, Source

GIVEN = "LOAM_SOURCES"
TIMEOUT_S = 600.0


def whole(source: Source, scratch: Path) -> Path:
    """The folder with the files of the commit and of its modules; a copy inside of `scratch` where there are modules.

    raises: LoamError as files() does
    """
    home = files(source)
    if not source.modules:
        return home
    tree = scratch / source.repository
    shutil.copytree(home, tree, symlinks=True)
    for module in source.modules:
        shutil.copytree(files(module), tree / module.path, symlinks=True, dirs_exist_ok=True)
    return tree


def files(source: Source | Module) -> Path:
    """The folder with the files of the commit; fetched if it is not here yet.

    source: with git
    raises: LoamError where neither the network nor LOAM_SOURCES has them, or where they differ
    """
    home = recipe.folder() / ".sources" / f"{source.repository}-{source.commit[:16]}"
    if home.is_dir():
        _check(home, source, f"remove {home} and build again")
        return home
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=home.parent) as temporary:
        tree = Path(temporary) / "tree"
        given = os.environ.get(GIVEN)
        if given and (own := Path(given) / source.repository).is_dir():
            shutil.copytree(own, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            _check(tree, source, f"check out {source.commit} in {own}")
        else:
            _fetch(source, tree)
            _check(tree, source, "do not build it; find out where it comes from")
        tree.rename(home)
    return home


def digest(tree: Path) -> str:
    """SHA-256 over the names and contents of all files, in the order of their names; a link's content is its target."""
    whole = hashlib.sha256()
    for file in sorted(tree.rglob("*"), key=lambda one: one.relative_to(tree).as_posix()):
        if file.is_symlink():
            content = str(file.readlink()).encode()
        elif file.is_file():
            content = file.read_bytes()
        else:
            continue
        whole.update(f"{file.relative_to(tree).as_posix()}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return whole.hexdigest()


def _check(tree: Path, source: Source | Module, hint: str) -> None:
    actual = digest(tree)
    if actual != source.sha256:
        raise LoamError(
            source.repository, actual, f"SHA-256 of its files differs from the recipe's {source.sha256}", hint
        )


def _fetch(source: Source | Module, tree: Path) -> None:
    """One commit without its history."""
    name = source.repository
    otherwise = f"put the files of its commit {source.commit} into FOLDER/{name}, and set {GIVEN}=FOLDER"
    if os.environ.get("LOAM_NO_SETUP"):
        raise LoamError(name, None, "its sources are missing, and --no-setup forbids the download", otherwise)
    from loam_lab.setup import debian

    debian.ensure("clone")
    if shutil.which("git") is None:
        raise LoamError("git", None, "not found; it downloads the sources", "as root: apt-get install git")
    console.note(f"downloading {source.git} at {source.commit[:12]} ...")
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0"}
    steps = (
        ["git", "init", "--quiet", str(tree)],
        ["git", "-C", str(tree), "fetch", "--quiet", "--depth", "1", source.git, source.commit],
        ["git", "-C", str(tree), "checkout", "--quiet", "--detach", "FETCH_HEAD"],
    )
    for step in steps:
        try:
            done = subprocess.run(
                step,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LoamError(name, None, f"git did not end within {TIMEOUT_S:.0f} s", otherwise) from None
        if done.returncode != 0:
            message = (done.stderr.strip().splitlines() or ["git failed"])[-1]
            raise LoamError(name, None, f"{source.git} cannot be had here: {message}", otherwise)
    shutil.rmtree(tree / ".git")
