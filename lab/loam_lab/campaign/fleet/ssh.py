"""ssh: hosts that share nothing with this one, by the system's own ssh client.

The sources go over once, named by the digest of their contents, and are built there.  A job's agent is the child of an
ssh connection that stays silent until the agent ends, so nothing of Loam disturbs the host meanwhile.  A connection that
is cut ends no agent; the next agent of the same job waits for it and does what is missing.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.fleet import archive, survey
from loam_lab.campaign.fleet import job as jobs
from loam_lab.campaign.fleet.engine import Status
from loam_lab.campaign.fleet.job import Job
from loam_lab.model.store import folder as folders
from loam_lab.model.store import journal

COMMAND_TIMEOUT_S = 60.0
SETUP_TIMEOUT_S = 3600.0
CANCEL_WAIT_S = 30
# Below the home folder of each host.
REMOTE = ".cache/loam"
_HOST = re.compile(r"(?:[A-Za-z0-9_][\w.-]*@)?[A-Za-z0-9][\w.:-]*")
CUT = 255
# The exit status of ssh if the agent was killed by SIGKILL: as setsid reports it, which may have waited for the agent,
# or as the login shell reports it.
KILLED = (9, 128 + 9)


class Ssh:
    """See fleet.engine.Engine.

    hosts: as ssh takes them, names of ~/.ssh/config included; options: of ssh, such as -oPort=2222
    """

    name = "ssh"
    poll_s = 0.5

    def __init__(self, hosts: Sequence[str], options: Sequence[str] = ()) -> None:
        self._hosts, self._options = tuple(hosts), tuple(options)
        self._control = Path(tempfile.mkdtemp(prefix="loam-ssh-"))
        self._folder = Path()
        self._agents: dict[str, subprocess.Popen[bytes]] = {}
        self._places: dict[str, str] = {}
        self._campaign = ""

    def hosts(self) -> list[str]:
        """See Engine."""
        if shutil.which("ssh") is None:
            raise LoamError("--engine", "ssh", "ssh is not installed here", "as root: apt-get install openssh-client")
        for host in self._hosts:
            if not _HOST.fullmatch(host):
                raise LoamError("--hosts", host, "is no host's name", "for example alpha or user@alpha")
        return list(self._hosts)

    def ask(self, host: str, question: dict[str, Any]) -> dict[str, Any]:
        """See Engine: sends the sources where they are not there yet, and builds what the study needs."""
        place = self._sent(host)
        text = json.dumps(question, ensure_ascii=False)
        done = self._run(
            host, f"cd {place} && exec ./loam agent describe {shlex.quote(text)}", timeout_s=SETUP_TIMEOUT_S
        )
        self._places[host] = place
        return survey.answer_in(done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"), host,
                                f"see {place} on {host}")  # fmt: skip

    def _sent(self, host: str) -> str:
        """Where the sources are on a host, after they were sent if they were not there."""
        digest, names = archive.contents()
        place = f"{REMOTE}/sources/{digest}"
        if self._run(host, f"test -f {place}/{paths.SENT}", check=False).returncode != 0:
            part = f"{place}.$$"
            steps = f"mkdir -p {part} && tar -xf - -C {part} && mv -T {part} {place}"
            self._run(
                host, f"{steps} || test -f {place}/{paths.SENT}", archive.packed(names), timeout_s=SETUP_TIMEOUT_S
            )
        return place

    def open(self, folder: Path, hosts: Sequence[str]) -> None:
        """See Engine."""
        self._folder = folder.resolve()
        mark = self._folder / jobs.FOLDER / "campaign"
        if not mark.exists():
            journal.write_whole(mark, f"{self._folder.name}-{os.urandom(8).hex()}\n")
        self._campaign = f"{REMOTE}/campaigns/{shlex.quote(mark.read_text().strip())}"
        for host in hosts:
            self._end(host)
            self._write(host, folders.MANIFEST, (self._folder / folders.MANIFEST).read_bytes())
            self._fetch(host)

    def _write(self, host: str, name: str, content: bytes) -> None:
        file = f"{self._campaign}/{name}"
        self._run(host, f"mkdir -p $(dirname {file}) && cat > {file}.part && mv {file}.part {file}", content)

    def submit(self, job: Job) -> None:
        """See Engine."""
        self._write(job.host, f"{jobs.FOLDER}/{job.name}.json", jobs.file_of(self._folder, job.name).read_bytes())
        # A session of its own: the agent goes on when the connection is cut.
        agent = f'setsid --wait ./loam agent run "$c" {shlex.quote(job.name)}'
        with jobs.log_of(self._folder, job.name).open("ab") as log:
            self._agents[job.name] = subprocess.Popen(
                self._command(job.host, f"c=$PWD/{self._campaign}; cd {self._places[job.host]} && exec {agent}"),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def poll(self, submitted: Sequence[Job]) -> dict[str, Status]:
        """See Engine."""
        statuses = {}
        for job in submitted:
            status = self._agents[job.name].poll()
            if status is None:
                statuses[job.name] = Status("running")
            elif status == CUT:
                statuses[job.name] = Status("lost", "the connection was cut")
            elif status in KILLED:
                what = (
                    "the agent was killed there, as by a kernel that is out of memory; see dmesg there, and free memory"
                )
                statuses[job.name] = Status("lost", what)
            else:
                statuses[job.name] = Status("ended", f"the agent ended with status {status}")
        return statuses

    def fetch(self, job: Job) -> None:
        """See Engine."""
        try:
            self._fetch(job.host)
            end = self._run(
                job.host, f"cat {self._campaign}/{jobs.FOLDER}/{shlex.quote(job.name)}.end.json", check=False
            )
            if end.returncode == 0:
                jobs.end_of(self._folder, job.name).write_bytes(end.stdout)
        except LoamError:
            return  # cut again: what is there is fetched with the next job, or by --resume

    def _fetch(self, host: str) -> None:
        """Append to this side's copy of a host's journal what is new of it, whole lines only."""
        file = self._folder / journal.FOLDER / f"{host}.jsonl"
        file.parent.mkdir(exist_ok=True)
        with journal.writable(file), file.open("ab") as copy:
            at = copy.tell()
            there = f"{self._campaign}/{journal.FOLDER}/{shlex.quote(host)}.jsonl"
            new = self._run(host, f"if test -f {there}; then tail -c +{at + 1} {there}; fi").stdout
            copy.write(new[: new.rfind(b"\n") + 1])
            copy.flush()
            os.fsync(copy.fileno())

    def cancel(self, submitted: Sequence[Job]) -> None:
        """See Engine."""
        for job in submitted:
            try:
                self._end(job.host)
            except LoamError:
                continue
        for job in submitted:
            agent = self._agents.get(job.name)
            if agent is not None and agent.poll() is None:
                agent.terminate()
                agent.wait()

    def _end(self, host: str) -> None:
        """End this campaign's agent on a host and wait for it."""
        pid = f"{self._campaign}/{jobs.FOLDER}/{jobs.PID}"
        alive = 'grep -q agent "/proc/$p/cmdline" 2>/dev/null'
        wait = f"n=0; while {alive} && [ $n -lt {CANCEL_WAIT_S * 5:.0f} ]; do sleep 0.2; n=$((n+1)); done"
        script = f'p=$(cat {pid} 2>/dev/null) && {alive} || exit 0; kill -TERM "$p"; {wait}'
        self._run(host, script, timeout_s=CANCEL_WAIT_S + COMMAND_TIMEOUT_S)

    def close(self) -> None:
        """See Engine."""
        for host in self._hosts:
            command = ["ssh", *self._multiplexed(), "-O", "exit", host]
            subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_TIMEOUT_S, check=False
            )
        shutil.rmtree(self._control, ignore_errors=True)

    def _multiplexed(self) -> list[str]:
        return ["-oBatchMode=yes", "-oControlMaster=auto", f"-oControlPath={self._control}/%C", "-oControlPersist=600",
                "-oConnectTimeout=20", "-oServerAliveInterval=60", *self._options]  # fmt: skip

    def _command(self, host: str, script: str) -> list[str]:
        return ["ssh", *self._multiplexed(), "-T", host, "--", "sh -c " + shlex.quote(script)]

    def _run(
        self, host: str, script: str, content: bytes = b"", *, timeout_s: float = COMMAND_TIMEOUT_S, check: bool = True
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a script on a host.

        raises: LoamError if the host is not reached, or (with check) the script fails
        """
        try:
            done = subprocess.run(
                self._command(host, script), input=content, capture_output=True, timeout=timeout_s, check=False
            )
        except subprocess.TimeoutExpired:
            raise LoamError("--hosts", host, f"gave no answer within {timeout_s:.0f} s", "is it overloaded?") from None
        if done.returncode == CUT:
            raise _unreached(host, done.stderr.decode(errors="replace"))
        if check and done.returncode != 0:
            message = " ".join(done.stderr.decode(errors="replace").split())[-300:]
            raise LoamError(
                "--hosts", host, message or f"a command ended with status {done.returncode}", "see the host"
            )
        return done


def _unreached(host: str, message: str) -> LoamError:
    """Why ssh does not reach a host, and what to do."""
    last = message.strip().splitlines()[-1] if message.strip() else "no reason given"
    name = host.rpartition("@")[2]
    for words, limit, hint in (
        ("IDENTIFICATION HAS CHANGED", "its host key changed: another machine answers, or it was installed anew",
         f"ask its administrator; if that is so: ssh-keygen -R {name}, then ssh {host} once"),
        ("Host key verification failed", "its host key is not known here", f"check it and connect once: ssh {host}"),
        ("Permission denied", "it takes none of your keys", f"ssh-copy-id {host}, or start ssh-agent"),
        ("Could not resolve", "there is no host of that name", "see ~/.ssh/config and the spelling"),
        ("Connection refused", "no ssh server answers there", "is sshd running, at this port?"),
    ):  # fmt: skip
        if words in message:
            return LoamError("--hosts", host, limit, hint)
    return LoamError("--hosts", host, f"cannot be reached: {last}", f"try ssh {host}")
