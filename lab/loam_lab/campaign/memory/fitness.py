"""Whether memory figures of this machine may decide anything: who could take pages away behind the program's back.

Unfit where the kernel can take anonymous memory (swap or zram) or did (its page-out counters grew during the run).
DAMON only watches by itself, and without swap it can take no more than pages that a program has freed lazily: a warning.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# Grow when anonymous pages leave memory.  Missing ones (older kernels) are left out.
PAGE_OUT = ("pswpout", "zswpout", "pgsteal_anon")
LAZY = "pglazyfreed"


def counters(root: Path = Path("/")) -> dict[str, int]:
    """The kernel's counts of pages taken so far, by name; empty where they cannot be read."""
    try:
        lines = (root / "proc/vmstat").read_text().splitlines()
    except OSError:
        return {}
    pairs = (line.split() for line in lines)
    return {name: int(value) for name, value in pairs if name in PAGE_OUT or name == LAZY}


def reclaimable(root: Path = Path("/")) -> list[str]:
    """Why the kernel could take anonymous memory here, one sentence each; empty where it cannot."""
    reasons = []
    try:
        swaps = [line.split()[0] for line in (root / "proc/swaps").read_text().splitlines()[1:] if line.strip()]
    except OSError:
        swaps = []
    if swaps:
        reasons.append(
            f"{', '.join(swaps)} is in use as swap; the kernel can swap memory out unnoticed; run swapoff -a"
        )
    for device in sorted((root / "sys/block").glob("zram*")):
        try:
            size = int((device / "disksize").read_text())
        except (OSError, ValueError):
            continue
        if size and f"/dev/{device.name}" not in swaps:
            reasons.append(f"{device.name} is set up; memory can be compressed into it unnoticed; run zramctl --reset")
    return reasons


def taken(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """Which page-out counters grew during a run, one sentence each."""
    return [
        f"{name} grew by {after[name] - before[name]} pages during the run; the kernel took memory from some program; "
        "give the machine more free memory and repeat"
        for name in PAGE_OUT
        if name in before and after.get(name, 0) > before[name]
    ]


def damon(root: Path = Path("/")) -> bool:
    """Whether DAMON, or reclaim that is driven by it, is active."""
    for state in (root / "sys/kernel/mm/damon/admin/kdamonds").glob("*/state"):
        if _text(state) == "on":
            return True
    modules = (root / "sys/module" / name / "parameters/enabled" for name in ("damon_reclaim", "damon_lru_sort"))
    return any(_text(file) == "Y" for file in modules)


def warnings(
    before: Mapping[str, int], after: Mapping[str, int], *, peak_lazy_bytes: int, peak_bytes: int
) -> list[str]:
    """What to know about the figures of one run: pages that the program freed lazily (MADV_FREE)."""
    texts = []
    lost = after.get(LAZY, 0) - before.get(LAZY, 0)
    if lost > 0:
        texts.append(
            f"{lost} lazily freed pages (MADV_FREE) were taken during its memory run; RSS and PSS fell without the "
            "program; give the machine more free memory and repeat"
        )
    if peak_lazy_bytes > 0.01 * peak_bytes:
        texts.append(
            f"up to {peak_lazy_bytes / 2**20:.1f} MiB of its memory were freed lazily (MADV_FREE) and still counted; "
            "the program needs less than is shown; see the live bytes where there are any"
        )
    return texts


def _text(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""
