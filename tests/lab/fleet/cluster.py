"""A Slurm cluster of two nodes on this machine: munged, slurmctld and two slurmd, in a folder of the test's own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

from loam_lab.base.errors import LoamError
from loam_lab.setup import debian

NODES = ("bench1", "bench2")
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "srun", "scancel", "sinfo")
UP_S = 60.0

_CONF = """\
ClusterName=loam
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdTimeout=10
KillWait=3
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
NodeName=bench1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cpus}
NodeName=bench2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cpus}
PartitionName=bench Nodes=bench1,bench2 Default=YES OverSubscribe=EXCLUSIVE MaxTime=INFINITE State=UP
"""


def lacking() -> str:
    """Why no cluster can be started here; "" where it can. Installs Slurm as root, as set-up does its own packages."""
    if os.geteuid() != 0:
        return "slurmd starts jobs as root only"
    if missing := [name for name in PROGRAMS if shutil.which(name) is None]:
        try:
            debian.ensure("fleet")
        except LoamError as problem:
            return problem.line()
        missing = [name for name in PROGRAMS if shutil.which(name) is None]
    if missing:
        return f"{missing[0]} is not installed"
    if _needs_cgroups() and not os.path.ismount("/sys/fs/cgroup"):
        return "slurmd before 23.11 needs /sys/fs/cgroup, which is not mounted here"
    return ""


def _version() -> tuple[int, ...]:
    """Of slurmd: (22, 5) for "slurm-wlm 22.05.8"."""
    line = subprocess.run(["slurmd", "-V"], capture_output=True, text=True, check=True).stdout
    return tuple(int(number) for number in line.split()[-1].split(".")[:2])


def _needs_cgroups() -> bool:
    """Whether slurmd ends without /sys/fs/cgroup, which a root in a folder has not: later ones can be told to do without."""
    return _version() < (23, 11)


def _ports(count: int) -> list[int]:
    taken = [socket.socket() for _ in range(count)]
    for one in taken:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in taken]
    for one in taken:
        one.close()
    return ports


class Cluster:
    """The cluster; environment: of commands that are to reach it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        for name in ("state", *(f"spool.{node}" for node in NODES)):
            (folder / name).mkdir()
        conf = folder / "slurm.conf"
        conf.write_text(
            _CONF.format(host=socket.gethostname().split(".")[0], folder=folder, user="root", ports=_ports(3),
                         cpus=os.cpu_count())
        )  # fmt: skip
        if not _needs_cgroups():
            (folder / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        self.environment = {**os.environ, "SLURM_CONF": str(conf)}
        key = folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        folder.chmod(0o755)

    def start(self) -> None:
        """Start all of it and wait until both nodes are idle."""
        self._start("munged", ["--foreground", "--force", f"--socket={self.folder}/munge.socket",
                    f"--key-file={self.folder}/munge.key", f"--pid-file={self.folder}/munged.pid",
                    f"--log-file={self.folder}/munged.log", f"--seed-file={self.folder}/munge.seed"])  # fmt: skip
        self.start_controller()
        for node in NODES:
            self.start_node(node)
        until = time.monotonic() + UP_S
        while time.monotonic() < until:
            if self.states() == dict.fromkeys(NODES, "idle"):
                return
            time.sleep(0.3)
        raise RuntimeError(f"the cluster did not come up: {self.states()}; see {self.folder}")

    def start_controller(self) -> None:
        self._start("slurmctld", ["-D", "-f", self.environment["SLURM_CONF"]])

    def start_node(self, node: str) -> None:
        self._start(f"slurmd {node}", ["-D", "-N", node, "-f", self.environment["SLURM_CONF"]])

    def kill(self, name: str) -> None:
        """End a part at once: slurmctld, or slurmd NODE."""
        process = self._processes.pop(name)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def states(self) -> dict[str, str]:
        rows = self.command("sinfo", "-h", "-N", "-o", "%N %T").split("\n")
        return {row.split()[0]: row.split()[1] for row in rows if " " in row}

    def command(self, *words: str) -> str:
        """What a command of Slurm prints, whatever its status."""
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        return done.stdout

    def stop(self) -> None:
        self.command("scancel", "--user=root")
        time.sleep(0.5)
        for name in reversed(list(self._processes)):
            self._processes[name].terminate()
        for process in self._processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, name: str, arguments: list[str]) -> None:
        log = (self.folder / f"{name.replace(' ', '.')}.out").open("ab")
        program = name.split()[0]
        self._processes[name] = subprocess.Popen(
            [program, *arguments], env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
        if program == "munged":
            until = time.monotonic() + UP_S
            while not (self.folder / "munge.socket").exists() and time.monotonic() < until:
                time.sleep(0.05)
