"""The commands `loam allocators add`, `remove` and `verify`."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError, unknown
from loam_lab.subjects.allocators import identify, registry

if TYPE_CHECKING:
    from loam_lab.subjects.allocators.verify import Verification


def add(name: str, path: Path, *, as_json: bool) -> int:
    """Register a shared object as an allocator of the user's own.

    name: what to call it; path: the object file, absolute or relative to the current folder
    returns: exit status 0
    raises: LoamError if the name is taken or malformed, the file cannot serve as an allocator here, or the settings
            folder cannot be written
    """
    if not registry.NAME_PATTERN.fullmatch(name):
        raise LoamError("NAME", name, "not an allocator name", registry.NAME_ALLOWED)
    known = registry.definitions()
    if name in known:
        taken = known[name].source
        hint = f"./loam allocators remove {name}" if _is_users(taken) else "choose another name"
        raise LoamError("NAME", name, f"already the allocator of {taken}", hint)
    absolute = Path(os.path.abspath(path.expanduser()))  # noqa: PTH100  symbolic links stay: a package update moves them
    parsed = identify.require_allocator(absolute)
    file = registry.user_folder() / f"{name}.toml"
    lines = [
        f"summary = {_toml(f'added from {absolute}')}",
        f"candidates = [{_toml(str(absolute))}]",
        *([f"soname = {_toml(parsed.soname)}"] if parsed.soname else []),
        "",
    ]
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(f".{os.getpid()}.new")
        temporary.write_text("\n".join(lines))
        temporary.replace(file)
    except OSError as problem:
        raise LoamError(str(file), None, f"cannot be written: {problem.strerror}", "check its permissions") from None
    loaded = registry.load(name)
    if as_json:
        console.print_json(
            {"schema": 1, "name": name, "path": loaded.path, "soname": loaded.soname, "build_id": loaded.build_id,
             "sha256": loaded.sha256, "file": str(file)}
        )  # fmt: skip
    else:
        console.note(f"added {name}: {loaded.path}  (kept in {file})")
        console.note(f"prove that it works: ./loam allocators verify {name}")
    return 0


def remove(name: str, *, as_json: bool) -> int:
    """Forget an allocator that add registered; the object file stays.

    returns: exit status 0
    raises: LoamError if the name is unknown or belongs to the tree
    """
    file = registry.user_folder() / f"{name}.toml"
    if not file.is_file():
        known = registry.definitions()
        if name in known:
            raise LoamError("NAME", name, f"belongs to {known[name].source}", "only what add registered can be removed")
        own = [other for other, definition in known.items() if _is_users(definition.source)]
        raise unknown("NAME", name, own, "allocator that add registered")
    try:
        file.unlink()
    except OSError as problem:
        raise LoamError(str(file), None, f"cannot be removed: {problem.strerror}", "check its permissions") from None
    if as_json:
        console.print_json({"schema": 1, "name": name, "removed": str(file)})
    else:
        console.note(f"removed {name} ({file})")
    return 0


def verify(name: str, command: Sequence[str], *, as_json: bool) -> int:
    """Prove an allocator, in a process of ours or in a command of the user's.

    name: with settings, as in glibc:tcache=0; command: program and arguments, empty for ours alone
    returns: 0 if proven, else 1
    raises: LoamError if the allocator or the command does not exist
    """
    from loam_lab.setup import build
    from loam_lab.subjects.allocators import building
    from loam_lab.subjects.allocators import verify as verification

    building.ensure_own([name])
    allocator = registry.load(name)
    libraries = build.ensure_built(["probe"])["libraries"]
    outcome = verification.run(allocator, Path(libraries["probe"]), command, quiet=as_json)
    if as_json:
        console.print_json(outcome.as_json())
    else:
        _print(outcome)
    return 0 if outcome.status == "proven" else 1


def listing(*, as_json: bool) -> int:
    """Print every allocator: version, whether it can be measured here, settings.

    returns: exit status 0, also where some are missing
    """
    known = registry.definitions()
    entries: list[dict[str, object]] = []
    for name in registry.all_names():
        definition = known[registry.split(name)[0]]
        entry: dict[str, object] = {
            "name": name, "summary": definition.summary, "default": definition.default, "package": definition.package,
            "forwards": definition.forwards, "file": str(definition.source), "built_from": _built_from(definition),
            "built_here": bool(definition.targets),
            "settings": [_setting(setting) for setting in definition.settings.values()],
        }  # fmt: skip
        try:
            loaded = registry.load(name)
        except LoamError as problem:
            entry |= {"available": False, "problem": problem.line()}
        else:
            entry |= {
                "available": True, "version": loaded.version, "path": loaded.path, "soname": loaded.soname,
                "build_id": loaded.build_id, "sha256": loaded.sha256, "environment": loaded.environment,
            }  # fmt: skip
        entries.append(entry)
    if as_json:
        console.print_json({"schema": 1, "allocators": entries})
    else:
        _print_listing(entries)
    return 0


def _built_from(definition: registry.Definition) -> dict[str, object] | None:
    source = definition.recipe
    if source is None:
        return None
    return {
        "crate": source.crate, "version": source.version, "debian": source.debian, "git": source.git,
        "commit": source.commit, "license": source.license,
        "build_s": source.build_s, "on_request": source.on_request, "command": f"./loam allocators build {definition.name}",
    }  # fmt: skip


def _setting(setting: registry.Setting) -> dict[str, object]:
    values: dict[str, object] = {
        "name": setting.name, "type": setting.kind, "help": setting.help, "environment": setting.environment,
        "search": list(setting.search), "default": setting.default,
    }  # fmt: skip
    if setting.kind == "integer":
        return {**values, "min": setting.minimum, "max": setting.maximum}
    return {**values, "choices": [key for key, _ in setting.choices]}


def _print_listing(entries: Sequence[Mapping[str, Any]]) -> None:
    from rich.markup import escape

    known = registry.definitions()
    rows = []
    for entry in entries:
        about = escape(entry["summary"])
        if entry["name"] not in known:
            about = "as above, with this setting"
        elif ":" not in entry["name"] and entry["settings"]:
            about += f"\n[aside]settings: {', '.join(setting['name'] for setting in entry['settings'])}[/aside]"
        version = escape(entry.get("version") or "unknown")
        if not entry["available"]:
            version, about = "[doubt]missing[/doubt]", escape(entry["problem"])
            if entry["built_here"]:
                # Of this checkout: nothing that a user has to find.
                version, about = "[aside]built on first use[/aside]", escape(entry["summary"])
            elif entry["built_from"]:
                version = "[doubt]not built[/doubt]"
                about = f"{escape(entry['summary'])}\n[command]{entry['built_from']['command']}[/command]"
        rows.append((f"[command]{escape(entry['name'])}[/command]", version, about))
    console.out().print(console.table(("name", "version", "what it is"), rows))
    console.out().print("Settings follow the name, as in glibc:tcache=0. Your own: ./loam allocators add NAME PATH")


def _print(outcome: Verification) -> None:
    from rich.markup import escape

    style = {"proven": "good", "wrong": "bad"}.get(outcome.status, "doubt")
    out = console.out()
    allocator = outcome.allocator
    where = allocator.path or f"{registry.libc_path()} (the process's own)"
    out.print(
        f"{escape(allocator.name)} {escape(allocator.version)}: [{style}]{outcome.status}[/{style}]", soft_wrap=True
    )
    out.print(f"  [aside]{escape(where)}  build-id {allocator.build_id or 'none'}[/aside]", soft_wrap=True)
    for check in outcome.checks:
        mark = "[good]yes[/good]" if check.passed else "[bad]no [/bad]"
        out.print(f"  {mark}  {escape(check.what)}  [aside]{escape(check.detail)}[/aside]", soft_wrap=True)
    if outcome.command:
        out.print(f"  {escape(shlex.join(outcome.command))} ended with {outcome.exit_code}", soft_wrap=True)
        rows = [
            (
                str(p["pid"]),
                f"{p['cpu_s']:.3f}",
                str(p["status"]),
                escape(f"{p['exe']}  {'; '.join(p['reasons'])}".rstrip()),
            )
            for p in outcome.proof.processes
        ]
        out.print(console.table(("process", "CPU s", "status", "program"), rows, numeric=("process", "CPU s")))
        out.print(f"  {100 * outcome.proof.cpu_share_proven:.1f} % of the CPU time is proven")
    for reason in outcome.reasons:
        out.print(f"  [{style}]because[/{style}] {escape(reason)}", soft_wrap=True)
    for warning in outcome.warnings:
        console.warn(warning)


def _is_users(source: Path) -> bool:
    return source.parent == registry.user_folder()


def _toml(text: str) -> str:
    """A TOML basic string. JSON's escapes are a subset of TOML's, except for DEL, which paths do not hold."""
    import json

    return json.dumps(text, ensure_ascii=False)
