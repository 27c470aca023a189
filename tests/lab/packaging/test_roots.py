"""Empty roots of Debian: what the kernel shows in one, and that nothing stays mounted."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from loam_lab.dev import roots

SHOWN = ("proc", "sys", "dev/pts", "dev/shm")


@pytest.mark.skipif(os.geteuid() != 0, reason="mount needs root")
def test_a_root_has_terminals_and_shared_memory_of_its_own_and_its_mounts_end(tmp_path: Path) -> None:
    for name in ("etc/ssl/certs", "etc/apt/apt.conf.d", "proc", "sys", "dev"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "etc/debian_version").write_text("13.1\n")  # a root that is made already
    if subprocess.run(["unshare", "--mount", "true"], check=False).returncode != 0:
        pytest.skip("this container mounts nothing")
    with roots.made(tmp_path, "trixie") as root:
        assert root.folder == tmp_path
        assert all(os.path.ismount(tmp_path / name) for name in SHOWN)
        os.close(os.open(tmp_path / "dev/pts/ptmx", os.O_RDWR | os.O_NOCTTY))
        (tmp_path / "dev/shm/seen").write_text("here")
        assert not Path("/dev/shm/seen").exists()
        with pytest.raises(roots.RootError, match="is in use"), roots.made(tmp_path, "trixie"):
            pass
        assert all(os.path.ismount(tmp_path / name) for name in SHOWN), "the first user keeps what is mounted"
    assert not any(os.path.ismount(tmp_path / name) for name in SHOWN)
