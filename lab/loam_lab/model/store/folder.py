"""Result folders: where a campaign keeps its manifest, journal and result, and when an old one may be continued."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import loam_lab
from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.model import schema
from loam_lab.model.store import journal

if TYPE_CHECKING:
    from loam_lab.model.result import Result

MANIFEST = "campaign.json"
RESULT = "result.json"


def new(name: str, out: Path | None) -> Path:
    """A folder for a new campaign: `out`, or results/<name>-<UTC time>-<4 hex> in the current folder.

    raises: LoamError if it cannot be made
    """
    if out is not None:
        folder = out
    else:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        folder = paths.results_root() / f"{name}-{stamp}-{secrets.token_hex(2)}"
    with journal.writable(folder / MANIFEST):
        folder.mkdir(parents=True, exist_ok=True)
    return folder


def started(name: str, out: Path | None) -> Path:
    """The folder of the campaign to continue: `out`, or the newest of that name in the current folder.

    raises: LoamError if there is none
    """
    if out is not None:
        if not (out / MANIFEST).is_file():
            raise LoamError("--out", out, "no campaign was started in it", "leave out --resume to start one")
        return out
    folders = [folder for folder in paths.results_root().glob(f"{name}-*") if (folder / MANIFEST).is_file()]
    if not folders:
        raise LoamError(
            "--resume", None, f"no campaign of {name} was started in this folder", "leave out --resume to start one"
        )
    # The name holds the time; the manifest is written once, at the start.
    return max(folders, key=lambda folder: (folder / MANIFEST).stat().st_mtime_ns)


def check_unused(folder: Path) -> None:
    """Refuses to start a campaign in a folder that holds something; call with the lock held.

    A part of a manifest holds nothing: who wrote it was killed before the campaign began
    raises: LoamError
    """
    if (folder / MANIFEST).exists():
        raise LoamError(
            "--out", folder, "holds a campaign already", "add --resume to continue it, or choose another folder"
        )
    others = sorted(
        entry.name
        for entry in folder.iterdir()
        if entry.name != journal.LOCK and not entry.name.startswith(f".{MANIFEST}.")
    )
    if others:
        raise LoamError("--out", folder, f"is not empty: {others[0]}", "choose a new or empty folder")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a campaign.

    raises: LoamError if it is missing, damaged or of another schema version
    """
    file = folder / MANIFEST
    content = _read_json(file, "name a folder that loam tour, run, study or bench wrote")
    schema.check(file, content.get("schema"))
    return content


def read_result(folder: Path) -> Result:
    """The result of a folder.

    folder: one that holds result.json, or that file itself
    raises: LoamError if it is missing, damaged or of another schema version
    """
    file = folder if folder.is_file() else folder / RESULT
    if not file.exists():
        problem = f"holds no {RESULT}" if folder.exists() else "no such file or folder"
        raise LoamError(
            str(folder), None, problem, "name the folder of a result, or finish its measurement with --resume"
        )
    from loam_lab.model import result

    try:
        return result.read(file.read_bytes(), str(folder))
    except OSError as problem:
        raise LoamError("result", file, f"cannot be read: {problem.strerror}", result.AGAIN) from None


def _read_json(file: Path, hint: str) -> dict[str, Any]:
    try:
        content = json.loads(file.read_text())
    except OSError as problem:
        raise LoamError("result", file, f"cannot be read: {problem.strerror}", hint) from None
    except ValueError as problem:
        raise LoamError("result", file, f"is damaged: {problem}", hint) from None
    if not isinstance(content, dict):
        raise LoamError("result", file, "is not a JSON object", hint)
    return content


def check_same(folder: Path, old: Mapping[str, Any], new_manifest: Mapping[str, Any]) -> None:
    """Refuses to continue a campaign whose runs could not be compared with those to come.

    old: its manifest; new_manifest: the one that this start would write
    raises: LoamError naming what changed and both values
    """
    again = "start a new campaign, or go back to what the old one used"

    def refuse(what: str, before: object, now: object) -> LoamError:
        return LoamError("--resume", folder, f"{what} was {before} when the campaign started and is {now} now", again)

    if old["lab"] != loam_lab.__version__:
        raise refuse("the lab's version", old["lab"], loam_lab.__version__)
    for name, facts in new_manifest["machines"].items():
        known = old["machines"].get(name, facts)
        for key in ("cpu", "cores"):
            if known.get(key) != facts.get(key):
                raise refuse(f"{key} of machine {name}", known.get(key), facts.get(key))
    for kind, mark in (("executables", "build_id"), ("allocators", "sha256"), ("files", "sha256")):
        before = {(item.get("machine"), item["name"]): item[mark] for item in old[kind]}
        for item in new_manifest[kind]:
            place = item.get("machine"), item["name"]
            if before.get(place, item[mark]) != item[mark]:
                raise refuse(f"{mark} of {item['name']}", str(before[place])[:16], str(item[mark])[:16])
    plan = {**old["plan"], "study": _as_now(old["plan"]["study"])}
    if plan != new_manifest["plan"]:
        what = _difference(plan, new_manifest["plan"])
        raise LoamError("--resume", folder, f"{what} differs from the campaign's", again)


def _as_now(study: dict[str, Any]) -> dict[str, Any]:
    """A study as this lab writes it: keys that came later have their defaults."""
    from loam_lab.model.study import Study

    try:
        return Study.model_validate(study).model_dump(by_alias=True, mode="json")
    except ValueError:
        return study


def _difference(old: Any, new_value: Any, where: str = "plan") -> str:
    """The first place where two JSON values differ."""
    if isinstance(old, dict) and isinstance(new_value, dict):
        for key in [*old, *(k for k in new_value if k not in old)]:
            if old.get(key) != new_value.get(key):
                return _difference(old.get(key), new_value.get(key), f"{where}.{key}")
    if isinstance(old, list) and isinstance(new_value, list) and len(old) == len(new_value):
        for index, (a, b) in enumerate(zip(old, new_value, strict=True)):
            if a != b:
                return _difference(a, b, f"{where}[{index}]")
    return f"{where} ({_in_short(new_value)} now, {_in_short(old)} then)"


def _in_short(value: Any) -> str:
    """A JSON value in a line of a message: of a list of tables their names, of anything else at most 200 characters."""
    if isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        value = ", ".join(str(item["name"]) for item in value)
    text = str(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


def point_latest(folder: Path) -> None:
    """Let results/latest of the current folder point to this result, if it lies beside it.  Best effort."""
    root = paths.results_root()
    if folder.resolve().parent != root.resolve():
        return
    link = root / f".latest.{os.getpid()}"
    with contextlib.suppress(OSError):
        link.unlink(missing_ok=True)
        link.symlink_to(folder.name)
        link.replace(root / "latest")
