"""Whether the settings of an allocator of this checkout fit together: a program under it is started, and ends at once with
the allocator's own words where they do not. The rules are the allocator's; the lab knows none of them.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable

from loam_lab.base.errors import LoamError
from loam_lab.subjects.allocators import registry

# It allocates while it starts, and is everywhere.
_PROGRAM = ("/bin/ls", "/dev/null")
_SAYS = "loam: "
TIMEOUT_S = 20


def misfit(name: str, preset: str = "release") -> str:
    """Why an allocator of this checkout cannot serve with these settings, on this machine; "" where it can.

    name: of an allocator whose library is built, in that preset; raises: LoamError as registry.load does
    """
    chosen = registry.load(name, preset)
    environment = {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LD_PRELOAD": ":".join(chosen.libraries), **chosen.environment,
    }  # fmt: skip
    try:
        done = subprocess.run(
            _PROGRAM, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT_S,
            check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"a program under it did not end within {TIMEOUT_S} s"
    if done.returncode == 0:
        return ""
    message = next((line.removeprefix(_SAYS) for line in done.stderr.splitlines() if line.startswith(_SAYS)), "")
    for variable, value in chosen.environment.items():
        message = message.removeprefix(f"{variable}={value}: ").removeprefix(f"{variable}: ")
    return message or f"a program under it ended with status {done.returncode}"


def needs_transactions(name: str) -> bool:
    """Whether a setting of an allocator is what it says only where there are hardware transactions."""
    settings = registry.definitions()[registry.split(name)[0]].settings
    return any(value in settings[key].transactions for key, value in registry.values(name).items() if key in settings)


def combined(names: Iterable[str]) -> list[str]:
    """Those of the named allocators that this checkout makes and whose settings somebody chose."""
    known = registry.definitions()
    chosen = []
    for name in dict.fromkeys(names):
        base, settings = registry.split(name)
        if settings and base in known and known[base].targets:
            chosen.append(name)
    return chosen


def check(names: Iterable[str], preset: str = "release", *, simulated: bool = False) -> None:
    """Refuse allocators whose settings do not fit together, before anything is measured.

    names: as combined() gives them; simulated: they are for a machine that may have hardware transactions where this one
    has none, so that what needs those is not asked here
    raises: LoamError with the allocator's own words
    """
    for name in names:
        if not (simulated and needs_transactions(name)) and (why := misfit(name, preset)):
            raise LoamError("--allocator", name, why, "./loam list allocators has its settings")
