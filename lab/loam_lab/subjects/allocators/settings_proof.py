"""Proof of settings: the allocator is asked, in a process of its own, what it made of the environment."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from loam_lab.subjects.allocators import registry, settings_query
from loam_lab.subjects.allocators.registry import Allocator

_TIMEOUT_S = 60.0


def answers(allocator: Allocator) -> dict[str, tuple[str, str | None]]:
    """What the allocator says of each setting that was given and that it can be asked about.

    returns: name of the setting -> (what was put into the environment, what the allocator tells; None: nothing)
    """
    definition = registry.definitions()[allocator.base]
    asked = {
        name: (setting, setting.proof.partition(":"))
        for name in allocator.settings
        if (setting := definition.settings[name]).proof
    }
    if not asked:
        return {}
    questions = [":".join([kind, rest]) for _, (kind, _, rest) in asked.values() if kind != "verbose"]
    done = _ask(allocator, questions, verbose=any(kind == "verbose" for _, (kind, _, _) in asked.values()))
    replies = iter(done.stdout.splitlines())
    by_name: dict[str, tuple[str, str | None]] = {}
    for name, (setting, (kind, _, rest)) in asked.items():
        given = setting.text(allocator.base, allocator.settings[name])
        # jemalloc's variable has KEY:VALUE, the others the bare value.
        wanted = given.rpartition(":")[2] if setting.join else given
        if kind == "verbose":
            line = re.search(rf"option '{re.escape(rest)}': (-?\d+)", done.stderr)
            answer = line[1] if line else None
        else:
            answer = json.loads(next(replies, "null"))
        by_name[name] = (wanted, answer)
    return by_name


def _ask(allocator: Allocator, questions: list[str], *, verbose: bool) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k not in registry.setting_variables()}
    environment |= allocator.environment | {"LD_PRELOAD": ":".join(allocator.libraries)}
    if verbose:
        environment["MIMALLOC_VERBOSE"] = "1"  # mimalloc lists its options at the start
    command = [sys.executable, "-I", "-S", str(Path(settings_query.__file__).resolve()), *questions]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
