"""`loam allocators verify`: run something under an allocator and prove which allocator it was.

Without a command: 1 MiB of blocks in a process of ours. libc's own heap must not grow, or under glibc must grow by it;
Settings are proven where that is possible: glibc's thread cache by its effect, others by what the allocator tells.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from loam_lab.base.errors import LoamError
from loam_lab.subjects.allocators import growth, preflight, preloading, probe, registry, settings_proof
from loam_lab.subjects.allocators.probe import Proof
from loam_lab.subjects.allocators.registry import Allocator

_TIMEOUT_S = 60.0
_STDERR = 2  # the descriptor, whatever sys.stderr was replaced by


@dataclass(frozen=True)
class Check:
    """One fact: what was asked, whether it holds, and the value seen."""

    what: str
    passed: bool
    detail: str


@dataclass(frozen=True)
class Verification:
    """Everything that `verify` found out.

    status: "proven", "wrong" or "unproven"; exit_code: of the command (negative: killed by that signal)
    """

    allocator: Allocator
    status: str
    reasons: list[str]
    warnings: list[str]
    checks: list[Check]
    proof: Proof
    command: list[str]
    exit_code: int

    def as_json(self) -> dict[str, Any]:
        """For --json: the allocator's identity, status, reasons, warnings, checks, processes."""
        a = self.allocator
        return {
            "schema": 1,
            "allocator": {
                "name": a.name, "version": a.version, "path": a.path, "soname": a.soname, "build_id": a.build_id,
                "sha256": a.sha256, "settings": a.settings, "package": a.package, "forwards": a.forwards,
            },
            "status": self.status,
            "reasons": self.reasons,
            "warnings": self.warnings,
            "checks": [asdict(check) for check in self.checks],
            "processes": self.proof.processes,
            "cpu_share_proven": self.proof.cpu_share_proven,
            "command": self.command,
            "exit_code": self.exit_code,
        }  # fmt: skip


def check_command(command: Sequence[str]) -> None:
    """Refuse a command that is not there; raises: LoamError"""
    if command and preflight.executable(command[0]) is None:
        raise LoamError("command", command[0], "no such program", "give its path, or check PATH")


def run(allocator: Allocator, probe_path: Path, command: Sequence[str] = (), *, quiet: bool = False) -> Verification:
    """Verify an allocator with our growth test, and with a command where one is given.

    allocator: as loaded; probe_path: libloam-probe.so; quiet: send the command's standard output to standard error
    raises: LoamError if the command does not exist
    """
    check_command(command)
    checks, proof, exit_code = _growth(allocator, probe_path)
    if command and all(check.passed for check in checks):
        proof, _, exit_code = under(
            allocator, probe_path, list(command), stdout=_STDERR if quiet else None, timeout_s=None
        )
    failed = [check for check in checks if not check.passed]
    reasons = [*proof.reasons, *(f"{check.what}: {check.detail}" for check in failed)]
    status = proof.status
    if status == "proven" and failed:
        status = "wrong"
    return Verification(
        allocator, status, reasons, [*proof.warnings, *proof.notes], checks, proof, list(command), exit_code
    )


def under(
    allocator: Allocator,
    probe_path: Path,
    command: list[str],
    *,
    stdout: int | None = None,
    timeout_s: float | None = _TIMEOUT_S,
) -> tuple[Proof, str, int]:
    """Run one command under an allocator with the probe.

    stdout: descriptor, subprocess.PIPE to capture, None to inherit; timeout_s: None waits as long as it takes
    returns: proof, captured standard output, exit code (negative: signal)
    """
    environment = {k: v for k, v in os.environ.items() if k not in registry.setting_variables()}
    with preloading.place() as proof_file:
        environment |= preloading.environment(allocator, probe_path, proof_file)
        before = os.times()
        process = subprocess.Popen(command, env=environment, stdout=stdout, text=True)
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            output, _ = process.communicate()
        after = os.times()
        cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        proof = probe.read(proof_file, allocator, cpu_s, pid=process.pid, command=command)
    return proof, output or "", process.returncode


def _growth(allocator: Allocator, probe_path: Path) -> tuple[list[Check], Proof, int]:
    command = [sys.executable, "-I", "-S", str(Path(growth.__file__).resolve())]
    proof, output, exit_code = under(allocator, probe_path, command, stdout=subprocess.PIPE)
    try:
        seen: dict[str, Any] = json.loads(output)
    except ValueError:
        return [Check("1 MiB of blocks", False, f"the test process ended with {exit_code}")], proof, exit_code
    grew, size = int(seen["libc_grew_bytes"]), growth.BLOCKS * growth.BLOCK_BYTES
    checks = [Check("the whole family answers", bool(seen["family"]), "malloc to malloc_usable_size, alignment, free")]
    if allocator.path is None or allocator.forwards == "glibc":
        checks.append(Check("libc's heap grows with 1 MiB of blocks", grew >= size, f"grew by {grew} bytes"))
    else:
        checks.append(Check("libc's heap does not grow with 1 MiB of blocks", grew == 0, f"grew by {grew} bytes"))
        held = int(seen["libc_arena_bytes"]) + int(seen["libc_mapped_bytes"])
        checks.append(Check("libc's heap stays empty", held == 0, f"holds {held} bytes"))
    if allocator.path is None and "tcache" in allocator.settings:
        checks.append(_thread_cache(int(allocator.settings["tcache"]), int(seen["fastbin_grew_bytes"])))
    checks += [
        Check(
            f"the allocator itself says {name}={wanted}", answer == wanted, "says nothing" if answer is None else answer
        )
        for name, (wanted, answer) in settings_proof.answers(allocator).items()
    ]
    return checks, proof, exit_code


def _thread_cache(kept: int, fastbin_grew: int) -> Check:
    """Seven freed blocks of 48 bytes (chunks of 64): those the thread cache has no room for go to a fast bin."""
    expected = max(0, growth.CACHED_BLOCKS - kept) * 64
    what = f"a thread cache of {kept} keeps {min(kept, growth.CACHED_BLOCKS)} of {growth.CACHED_BLOCKS} freed blocks"
    return Check(what, fastbin_grew == expected, f"fsmblks grew by {fastbin_grew} bytes, expected {expected}")
