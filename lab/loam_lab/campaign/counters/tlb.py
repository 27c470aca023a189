"""Misses of the translation buffers where no hardware counter counts them: valgrind's lackey and a model (lab/probe/tlb.hpp).

Lackey writes down every access of a program; the model reads along.  Sizes and ways are those of this processor, as it tells
them itself.  Which pages the kernel makes large is not in the accesses: the model counts once with pages of 4 KiB alone,
which is what a program gets without huge pages, and once with pages of 2 MiB alone, which is the best that they could do.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base import paths
from loam_lab.campaign.counters import valgrind
from loam_lab.campaign.process.observer import Observer

if TYPE_CHECKING:
    from loam_lab.campaign.process.execute import Outcome

SOURCE = "lackey"
PROGRAM = "tlb"
_TRACE = "accesses"
# What the model still has to read once the program has ended fits into a pipe.
_READING_S = 60.0


@dataclass(frozen=True)
class Geometry:
    """Translation buffers for data, each (entries, ways). source: who says so

    first_small, first_large: of the first level, for pages of 4 KiB and of 2 MiB; second: for both
    """

    first_small: tuple[int, int]
    first_large: tuple[int, int]
    second: tuple[int, int]
    source: str

    def arguments(self) -> list[str]:
        """As the model takes it."""
        return [str(number) for shape in (self.first_small, self.first_large, self.second) for number in shape]

    def words(self) -> dict[str, str]:
        """As results have it."""
        shapes = {"4 KiB": self.first_small, "2 MiB": self.first_large, "second": self.second}
        return {
            **{name: f"{entries},{ways}" for name, (entries, ways) in shapes.items()},
            "source": self.source,
        }


def model() -> str:
    """The path of the model; raises: LoamError where it is not built"""
    return str(paths.load_paths("release")["libraries"][PROGRAM])


@functools.cache
def geometry() -> Geometry:
    """The buffers of this processor, or those that are assumed where it does not tell."""
    done = subprocess.run([model(), "geometry"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    shapes = {
        name: (int(document[name][0]), int(document[name][1])) for name in ("first_small", "first_large", "second")
    }
    return Geometry(**shapes, source=str(document["source"]))


def events(counts: Mapping[str, Any]) -> dict[str, int]:
    """What the model counted, as a run's line has it. counts: the object that it prints"""
    small, large = counts["small"], counts["large"]
    return {
        "Accesses": counts["accesses"],
        "Ir": counts["instructions"],
        "first_misses": small["first_misses"],
        "walks": small["walks"],
        "first_misses_large": large["first_misses"],
        "walks_large": large["walks"],
    }


class TlbObserver(Observer):
    """One run inside lackey, whose accesses the model reads through a pipe. scratch: a folder for that pipe"""

    # Every access is written down: a program takes some thousand times as long.
    timeout_min_s = 7200.0

    def __init__(self, scratch: Path) -> None:
        self._pipe = scratch / _TRACE
        self._reader: subprocess.Popen[str] | None = None

    def command(self, argv: Sequence[str]) -> list[str]:
        """See Observer."""
        return valgrind.lackey(argv, self._pipe)

    def begin(self) -> None:
        """See Observer."""
        self._pipe.unlink(missing_ok=True)
        os.mkfifo(self._pipe)
        self._reader = subprocess.Popen(
            [model(), *geometry().arguments(), str(self._pipe)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self, outcome: Outcome) -> tuple[dict[str, Any], str]:
        """See Observer; observed: {"source", "events": see events(), "tlb": the geometry, "version"}."""
        assert self._reader is not None, "begin() comes first"
        # Valgrind that did not start has never opened the pipe, for which the model waits.
        with contextlib.suppress(OSError):
            os.close(os.open(self._pipe, os.O_WRONLY | os.O_NONBLOCK))
        try:
            output, complaint = self._reader.communicate(timeout=_READING_S)
        except subprocess.TimeoutExpired:
            return {}, f"the model did not end within {_READING_S:.0f} s: a process that the program started still runs"
        if self._reader.returncode != 0:
            return {}, f"the model failed: {complaint.strip()[-200:]}"
        counts = json.loads(output)
        if not counts["accesses"]:
            return {}, "valgrind wrote down no access"
        return {
            "source": SOURCE,
            "events": events(counts),
            "tlb": geometry().words(),
            "version": valgrind.available()[1],
        }, ""

    def close(self) -> None:
        """See Observer."""
        if self._reader is not None:
            with self._reader as reader:
                reader.kill()
            self._reader = None
        self._pipe.unlink(missing_ok=True)
