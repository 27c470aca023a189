"""Counting what the processor does: hardware counters where they count, valgrind's models where they do not."""

from __future__ import annotations

from typing import Any


def probe() -> list[dict[str, Any]]:
    """What can count here, see sources.probe()."""
    from loam_lab.campaign.counters import sources

    return sources.probe()
