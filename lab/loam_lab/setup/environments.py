"""Python environments beside `.venv`, each made from a lock file when the first command needs it: few people do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError


def interpreter(name: str, what: str) -> Path:
    """The interpreter of the environment of requirements-NAME.lock, made or renewed where the file changed.

    what: what it brings, for messages
    raises: LoamError without a network, or under --no-setup
    """
    lock, venv = paths.root() / f"requirements-{name}.lock", paths.dot_loam() / f"{name}-venv"
    python, stamp = venv / "bin/python", venv / f".loam-{lock.name}"
    if stamp.is_file() and stamp.read_bytes() == lock.read_bytes() and python.exists():
        return python
    hint = f"is there a network? by hand: python3 -m venv {venv} && {python} -m pip install -r {lock.name}"
    if os.environ.get("LOAM_NO_SETUP"):
        raise LoamError("missing", None, what, hint)
    console.note(f"installing {what} of {lock.name} ...")
    shutil.rmtree(venv, ignore_errors=True)
    pip = [str(python), "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--require-hashes"]
    for command in ([sys.executable, "-m", "venv", str(venv)], [*pip, "--only-binary", ":all:", "-r", str(lock)]):
        if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode != 0:
            raise LoamError(lock.name, None, "could not be installed, see above", hint)
    shutil.copyfile(lock, stamp)
    return python
