"""The sources of this checkout as they are now, known by the digest of their contents: what ssh sends, and packages hold.

What is not in git's index, or ignored, is no source: a file that is new must be added before it is sent.
Uses the standard library only: the build of a package runs it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from loam_lab.base import paths
from loam_lab.base.errors import LoamError


def names() -> list[str]:
    """The files of the checkout that git knows and that are there, or those of the archive that the tree comes from.

    raises: LoamError where neither is known
    """
    if (sent := paths.sent()) is not None:
        return list(sent["files"])
    command = ["git", "--no-optional-locks", "-C", str(paths.root()), "ls-files", "-z"]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except OSError:
        raise LoamError("git", None, "is not installed", "as root: apt-get install git") from None
    if done.returncode != 0:
        raise LoamError(str(paths.root()), None, "is no git checkout, so its sources are not known", "clone Loam")
    listed = sorted(name for name in os.fsdecode(done.stdout).split("\0") if name)
    return [name for name in listed if os.path.lexists(paths.root() / name)]


def contents() -> tuple[str, list[str]]:
    """The digest of all sources and of the revision (32 hex digits), and their names."""
    files, digest = names(), hashlib.sha256(paths.revision().encode())
    for name in files:
        file = paths.root() / name
        content = os.fsencode(file.readlink()) if file.is_symlink() else file.read_bytes()
        mode = "x" if os.access(file, os.X_OK) else "-"
        digest.update(f"{name}\0{mode}\0{hashlib.sha256(content).hexdigest()}\n".encode(errors="surrogateescape"))
    return digest.hexdigest()[:32], files


def packed(files: Sequence[str], top: str = "") -> bytes:
    """A tar archive of sources, which ends with what paths.sent() reads; the same contents give the same bytes.

    top: a folder that all lie in, such as "loam-1.0/"
    """
    mark = json.dumps({"revision": paths.revision(), "files": list(files)}).encode()
    return tar(paths.root(), files, top, {paths.SENT: mark})


def tar(folder: Path, files: Sequence[str], top: str = "", more: Mapping[str, bytes] | None = None) -> bytes:
    """A tar archive of files of a folder, without owners and times: the same contents give the same bytes.

    top: a folder that all lie in, such as "loam-1.0/"; more: contents by name, which come last
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in files:
            entry = archive.gettarinfo(str(folder / name), arcname=top + name)
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, 0, "", ""
            entry.mode = 0o755 if entry.mode & 0o100 else 0o644
            if entry.isfile():
                with (folder / name).open("rb") as stream:
                    archive.addfile(entry, stream)
            else:
                archive.addfile(entry)
        for name, content in (more or {}).items():
            entry = tarfile.TarInfo(top + name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()
