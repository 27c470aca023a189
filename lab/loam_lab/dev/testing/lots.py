"""A share of many tests: another lot with each change of the runtime, and the same one wherever this tree is tested."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence

from loam_lab.base import paths
from loam_lab.setup import build, jvm
from loam_lab.subjects import simulated, sources

_FOLDERS = ("include", "runtime", "structures")
# Synchronisations with a file here are compiled with every workload and application, which takes a minute or more.
_COSTLY = ("runtime/tm/algorithms/", "workloads/syncs/")
# Those that most studies and the lab's tests run. One in so many of the others is built, as long as not all is asked for.
_ALWAYS = ("auto", "etl-wb", "htm-lock", "norec", "sequential")
_SYNCS_SHARE = 10


def sources_hash() -> int:
    """A number that changes with each file of the runtime, and does not depend on where the checkout lies."""
    root, value = paths.root(), 0
    for file in sorted(each for folder in _FOLDERS for each in (root / folder).rglob("*.[ch]*") if each.is_file()):
        value = zlib.crc32(file.read_bytes(), value)
    return value


def lot(names: Sequence[str], share: int, chosen: int) -> list[str]:
    """One in `share` of the names, in order: the lot `chosen`, counted modulo share."""
    return sorted(names)[chosen % share :: share]


def build_release(*, whole: bool = False) -> set[str]:
    """Build what tests of the measured build use: all but the costly synchronisations that are not of this tree's lot.

    whole: these too, as LOAM_TEST_ALL says for tests that have no other way to know
    returns: the names of what was built, as in loam-paths.json; raises: LoamError as build.ensure_built does
    """
    whole = whole or bool(os.environ.get("LOAM_TEST_ALL"))
    content = build.ensure_built(None if whole else [])
    known = {**content["executables"], **content["libraries"]}
    if whole:
        return set(known)
    costly = [name for name, source in sources.syncs().items() if source.file.startswith(_COSTLY)]
    sometimes = [name for name in costly if name not in _ALWAYS]
    left_out = set(sometimes) - set(lot(sometimes, _SYNCS_SHARE, sources_hash()))
    chosen = [name for name in known if name not in left_out and not name.startswith(jvm.PREFIX)]
    build.ensure_built(chosen)
    return set(chosen)


# What the lab's tests run on simulated machines. The default, auto, takes longer to compile than all others together.
_SIMULATED = ("etl-wb", "malloc", "none")
_SIMULATED_PREFIX = "simulated-"
_SIMULATED_BLOCKS = ("simulated-blocks",)


def build_simulated() -> None:
    """Build what the lab's tests run on simulated machines: before them, on all cores, while no test waits for it.

    raises: LoamError as build.ensure_built does
    """
    content = build.ensure_built([], simulated.PRESET)
    programs = [name for name in content["executables"] | content["libraries"] if name.startswith(_SIMULATED_PREFIX)]
    build.ensure_built([*_SIMULATED, *programs], simulated.PRESET)
    build.ensure_built(_SIMULATED_BLOCKS, simulated.PRESET_BLOCKS)
