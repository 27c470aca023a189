"""Ssh servers of a test's own on this machine: each plays a host that shares nothing with it."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from loam_lab.base.errors import LoamError
from loam_lab.setup import debian

SSHD = Path("/usr/sbin/sshd")


def lacking() -> str:
    """Why no server can be started here; "" where one can. Installs OpenSSH as root, as set-up does its own packages."""
    if os.geteuid() != 0:
        return "a server of the test's own needs root"
    if not SSHD.exists() or shutil.which("ssh") is None:
        try:
            debian.ensure("fleet")
        except LoamError as problem:
            return problem.line()
    return "" if SSHD.exists() else "openssh-server could not be installed"


class Server:
    """A server that listens on loopback alone; its user's home is a folder of the test.

    name: as its host key is known; environment: of what it starts, beside its own HOME; options: with which ssh reaches it
    """

    def __init__(self, folder: Path, name: str = "loopback", environment: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.folder, self.home = folder, folder / "home"
        self.home.mkdir()
        for key in ("host", "user"):
            self.new_key(key)
        (folder / "authorized_keys").write_text((folder / "user.pub").read_text())
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        own = "".join(
            f"export {key}={shlex.quote(value)}; "
            for key, value in {**(environment or {}), "HOME": str(self.home)}.items()
        )
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nStrictModes no\n"
            f"AuthorizedKeysFile {folder}/authorized_keys\nPasswordAuthentication no\nUsePAM no\nPermitRootLogin yes\n"
            f'AcceptEnv SLOW\nLogLevel ERROR\nForceCommand {own}cd {self.home} && eval "$SSH_ORIGINAL_COMMAND"\n'
        )
        self.known = folder / "known_hosts"
        self.know()
        self.options = (
            f"-oPort={self.port}", f"-oIdentityFile={folder}/user", "-oIdentitiesOnly=yes", f"-oHostKeyAlias={self.name}",
            f"-oUserKnownHostsFile={self.known}", "-oGlobalKnownHostsFile=none", "-oStrictHostKeyChecking=yes",
            "-oHostName=127.0.0.1", "-F", "none",
        )  # fmt: skip
        named = [option.removeprefix("-o").partition("=") for option in self.options if option.startswith("-o")]
        # The same for ~/.ssh/config, or for -F: several servers are then reached by their names.
        self.config = f"Host {self.name}\n" + "".join(f"  {key} {value}\n" for key, _, value in named)
        self.process: subprocess.Popen[bytes] | None = None

    def new_key(self, name: str) -> None:
        (self.folder / name).unlink(missing_ok=True)
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    def know(self) -> None:
        self.known.write_text(f"{self.name} " + (self.folder / "host.pub").read_text())

    def start(self) -> None:
        Path("/run/sshd").mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [str(SSHD), "-D", "-e", "-f", str(self.folder / "sshd_config")], stderr=(self.folder / "log").open("ab")
        )
        until = time.monotonic() + 20
        while time.monotonic() < until:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.05)
        raise RuntimeError((self.folder / "log").read_text())

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
