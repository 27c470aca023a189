"""Reads journals into runs, line by line; no line is kept, and the larger part of most lines is never made into objects.

What is the same in all runs of a cell is kept once.  A run of a purpose other than timing keeps its begin record whole:
there is one of it per cell.
"""

from __future__ import annotations

import gc
import json
import math
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from sys import intern
from typing import Any

import msgspec
import numpy as np

from loam_lab.judging.statistics.runs import JOURNALED, Iteration, Run
from loam_lab.model import schema
from loam_lab.model.records import values

# What a run's identity has in common with the other runs of its cell.
_IDENTITY = ("parameters", "warmup_ms", "allocator", "sync", "preset")
# So many different shares of disturbance are kept once each; beyond, every run keeps its own.
_QUIET_MAX = 10_000
_NULL = msgspec.Raw(b"null")
_CALM: Mapping[str, Any] = {}


class _Line(msgspec.Struct):
    """A line as far as a run is made of it.  What most runs of a cell have in common stays text until it is seen to be new."""

    id: Any = None
    schema: Any = None
    cell: str | None = None
    block: int | None = None
    copy: int | None = None
    attempt: int | None = None
    order: int | None = None
    purpose: str | None = None
    state: str | None = None
    failure: str | None = None
    detail: str | None = None
    started_utc: str | None = None
    t_s: float | None = None
    wall_s: float | None = None
    user_s: float | None = None
    system_s: float | None = None
    rss_peak_bytes: float | None = None
    faults_minor: float | None = None
    faults_major: float | None = None
    switches_voluntary: float | None = None
    switches_involuntary: float | None = None
    warnings: list[Any] | None = None
    identity: msgspec.Raw = _NULL
    disturbance: msgspec.Raw = _NULL
    proof: msgspec.Raw = _NULL
    observed: msgspec.Raw = _NULL
    records: list[msgspec.Raw] | None = None


class _Head(msgspec.Struct):
    """What tells a record's kind, and all of it that is read of an end."""

    kind: Any = None
    rated_by: Any = None
    result: Any = None


class _Mapping(msgspec.Struct):
    records_mapping: Any = ""


class _Begin(msgspec.Struct):
    tm: _Mapping | None = None


class _Quiet(msgspec.Struct):
    """What is kept of a run's disturbance where there is none to speak of."""

    contaminated: Any = None
    why: Any = None
    share: Any = msgspec.UNSET
    slices: Any = msgspec.UNSET
    slices_kept: Any = msgspec.UNSET
    own_share: Any = msgspec.UNSET


class _Proof(msgspec.Struct):
    status: Any = None
    reasons: list[Any] | None = None


_LINES, _HEADS, _BEGINS = msgspec.json.Decoder(_Line), msgspec.json.Decoder(_Head), msgspec.json.Decoder(_Begin)
_QUIET, _PROOFS = msgspec.json.Decoder(_Quiet | None), msgspec.json.Decoder(_Proof | None)
_whole: Callable[[msgspec.Raw], Any] = msgspec.json.Decoder().decode
_figures: Callable[[_Line], tuple[float | None, ...]] = attrgetter(*(metric.name for metric in JOURNALED))


@dataclass
class Reader:
    """Reads the lines of journals. damaged: lines that are none; runs: in the order of block and plan once read() is done"""

    folder: Path
    damaged: int = 0
    runs: list[Run] = field(default_factory=list)
    _keys: array[int] = field(default_factory=lambda: array("q"))
    _shared: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    _tuples: dict[tuple[Any, ...], tuple[Any, ...]] = field(default_factory=dict)

    def read(self, files: Iterable[Path]) -> list[Run]:
        """Every run of these journals once, the first of the plan where a run is there twice.

        raises: LoamError if a line is of another schema version
        """
        collecting = gc.isenabled()
        gc.disable()  # a million small objects that all stay: walking them again and again would take most of the time
        try:
            for file in files:
                with file.open("rb") as lines:
                    for raw in lines:
                        self._read(raw)
        finally:
            if collecting:
                gc.enable()
        self._once()
        orders = np.fromiter((run.order for run in self.runs), np.int64, len(self.runs))
        blocks = np.fromiter((run.block for run in self.runs), np.int64, len(self.runs))
        self.runs = [self.runs[place] for place in np.lexsort((orders, blocks)).tolist()]
        return self.runs

    def _read(self, raw: bytes) -> None:
        try:
            line = _LINES.decode(raw)
            if line.schema in (None, schema.SCHEMA) and line.id is not None:
                run = self._run(line)
                self._keys.append(hash(line.id))
                self.runs.append(run)
                return
        except (msgspec.MsgspecError, ValueError):
            pass
        self._refused(raw)

    def _refused(self, raw: bytes) -> None:
        """Count a line that is none; one of another schema ends the reading."""
        try:
            line = json.loads(raw)
        except ValueError:
            line = None
        if isinstance(line, dict) and line.get("id") is not None and line.get("schema") is not None:
            schema.check(self.folder, line["schema"])
        # A torn end is no damage: the writer mends it when it goes on.
        self.damaged += raw.endswith(b"\n") and bool(raw.strip())

    def _once(self) -> None:
        """Keep one of each run whose id was met more than once: the first in the plan's order."""
        keys = np.frombuffer(self._keys, dtype=np.int64) if self._keys else np.empty(0, dtype=np.int64)
        unique, counts = np.unique(keys, return_counts=True)
        several = set(unique[counts > 1].tolist())
        if not several:
            return
        first: dict[tuple[Any, ...], Run] = {}
        kept = []
        for key, run in zip(self._keys, self.runs, strict=True):
            if key not in several:
                kept.append(run)
                continue
            place = (key, run.cell, run.block, run.copy)
            if place not in first or run.order < first[place].order:
                first[place] = run
        self.runs = [*kept, *first.values()]

    def run(self, raw: bytes) -> Run:
        """The run of a line.

        raises: msgspec.MsgspecError if it is none
        """
        return self._run(_LINES.decode(raw))

    def _run(self, line: _Line) -> Run:
        cell, copy = intern(str(line.cell)), line.copy or 0
        purpose = intern(line.purpose or "timing")
        place = (cell, copy)
        begin, iterations, result, others = self._records(line.records or (), place, purpose)
        user_s, system_s, t_s = line.user_s, line.system_s, line.t_s
        known = _figures(line)
        both_s = None if user_s is None or system_s is None else user_s + system_s
        return Run(
            cell=cell, block=line.block or 0, copy=copy, attempt=line.attempt or 0, order=line.order or 0,
            identity=self._identity(line.identity, place), started_utc=line.started_utc or "" if t_s is None else "", t_s=t_s,
            disturbance=self._disturbance(line.disturbance), purpose=purpose, state=intern(str(line.state)),
            failure=intern(line.failure or ""), detail=intern(line.detail or ""), proof=self._proof(line.proof),
            observed=_whole(line.observed) or {}, warnings=self._kept(tuple(map(str, line.warnings or ()))),
            process=array("d", [math.nan if figure is None else figure for figure in (*known, both_s)]),
            begin=begin, iterations=iterations, result=result, others=others,
        )  # fmt: skip

    def _kept(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        """The same value, one object for all that are equal."""
        return self._tuples.setdefault(value, value)

    def _identity(self, text: msgspec.Raw, place: tuple[str, int]) -> Mapping[str, Any]:
        key = ("identity", *place)
        shared: Mapping[str, Any] | None = self._shared.get(key)
        if shared is None:
            identity = _whole(text) or {}
            shared = self._shared[key] = {name: identity.get(name) for name in _IDENTITY}
        return shared

    def _disturbance(self, text: msgspec.Raw) -> Mapping[str, Any]:
        given = _QUIET.decode(text)
        if given is None:
            return _CALM
        if given.contaminated or given.why:
            met: Mapping[str, Any] = _whole(text)
            return met
        key = ("disturbance", given.share, given.slices, given.slices_kept, given.own_share)
        shared: Mapping[str, Any] | None = self._shared.get(key)
        if shared is None:
            every = zip(("share", "slices", "slices_kept", "own_share"), key[1:], strict=True)
            shared = {name: value for name, value in every if value is not msgspec.UNSET}
            if len(self._shared) <= _QUIET_MAX:
                self._shared[key] = shared
        return shared

    def _proof(self, text: msgspec.Raw) -> Mapping[str, Any]:
        given = _PROOFS.decode(text) or _Proof()
        reasons = given.reasons or []
        key = ("proof", given.status, *map(str, reasons))
        shared: Mapping[str, Any] | None = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = {"status": given.status, "reasons": reasons}
        return shared

    def _records(
        self, records: Iterable[msgspec.Raw], place: tuple[str, int], purpose: str
    ) -> tuple[Mapping[str, Any], tuple[Iteration, ...], str | None, tuple[Mapping[str, Any], ...]]:
        begin: Mapping[str, Any] = {}
        iterations: list[Iteration] = []
        result: str | None = None
        others: list[Mapping[str, Any]] = []
        for text in records:
            head = _HEADS.decode(text)
            kind = head.kind
            if kind == "iteration":
                numbers = values(_whole(text))
                names = self._kept(tuple(numbers))
                iterations.append(Iteration(names, array("d", numbers.values()), head.rated_by == "slices"))
            elif kind == "begin" and not begin:
                begin = self._begin(text, place) if purpose == "timing" else _whole(text)
            elif kind == "end" and result is None:
                result = str(head.result) if head.result else None
            elif kind not in ("begin", "end"):
                others.append(self._other(_whole(text)))
        return begin, tuple(iterations), result, tuple(others)

    def _begin(self, text: msgspec.Raw, place: tuple[str, int]) -> Mapping[str, Any]:
        """The first begin record of a cell with the same mapping: what begins say of single runs is not asked for."""
        tm = _BEGINS.decode(text).tm
        key = ("begin", *place, "" if tm is None else str(tm.records_mapping))
        shared: Mapping[str, Any] | None = self._shared.get(key)
        if shared is None:
            shared = self._shared[key] = _whole(text)
        return shared

    def _other(self, record: Mapping[str, Any]) -> Mapping[str, Any]:
        """A record of another kind; the bounds of histograms, equal in most runs, are kept once."""
        if record.get("kind") == "histogram" and isinstance(record.get("bounds"), list):
            return {**record, "bounds": self._kept(tuple(record["bounds"]))}
        return record
