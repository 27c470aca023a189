"""The command `loam allocators build`: says what it will fetch and how long it takes, builds, names what failed.

Commands that name an allocator build it by themselves: ensure() and ensure_own().
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from loam_lab.base import console
from loam_lab.base.errors import LoamError, unknown
from loam_lab.subjects.allocators import compilation, recipe, registry
from loam_lab.subjects.allocators.registry import Definition


def buildable() -> dict[str, Definition]:
    """Allocators that come as sources, in the order of listings."""
    return {name: definition for name, definition in registry.definitions().items() if definition.recipe is not None}


def build(names: Sequence[str], *, again: bool = False, as_json: bool = False) -> int:
    """Build allocators; those that are built already are left alone.

    names: without settings; none: all but those on request; again: build even what is up to date
    returns: 0, 1 if one could not be built (the others are)
    raises: LoamError for a name that is no allocator, or one that is not built from sources
    """
    known = buildable()
    for name in names:
        if name not in known:
            if name in registry.definitions():
                raise LoamError("NAME", name, "is not built from sources", f"it can be built: {', '.join(known)}")
            raise unknown("NAME", name, known, "allocator that is built")
    chosen = list(names) or [n for n, d in known.items() if d.recipe is not None and not d.recipe.on_request]
    todo = [name for name in chosen if again or not is_current(known[name])]
    if todo:
        from loam_lab.setup import debian

        debian.ensure("measure")
    _announce([known[name] for name in todo])
    entries: list[dict[str, Any]] = [{"name": name, "built": False} for name in chosen if name not in todo]
    failures: list[tuple[str, LoamError]] = []
    for name in todo:
        source = known[name].recipe
        assert source is not None
        try:
            built = compilation.make(name, source, known[name].source)
            loaded = registry.load(name)
        except LoamError as problem:
            failures.append((name, problem))
            continue
        entries.append({**built, "built": True, "version": loaded.version, "build_id": loaded.build_id,
                        "path": loaded.path})  # fmt: skip
        size = f"{built['bytes'] / 1e6:.2f} MB"
        console.note(f"built {name} {loaded.version} in {built['seconds']:.0f} s ({size}, build-id {loaded.build_id})")
    if len(chosen) == 1 and failures:
        raise failures[0][1]
    for name, failure in failures:
        console.warn(f"{name} was not built: {failure.line()}")
    if as_json:
        errors = [{"name": name, **failure.as_json()} for name, failure in failures]
        console.print_json({"schema": 1, "allocators": entries, "errors": errors})
    elif todo and not failures:
        console.note(f"prove that one works: ./loam allocators verify {todo[0]}")
    elif not todo:
        console.note(f"up to date: {', '.join(chosen)}")
    return 1 if failures else 0


def ensure(names: Sequence[str]) -> None:
    """Build those of the named allocators that come as sources and are not built yet: commands set themselves up.

    names: as the user typed them, settings included; what is unknown is left to the registry
    raises: LoamError as compilation.make does; under --no-setup nothing is built, and loading names the command
    """
    ensure_own(names)
    known = buildable()
    bases = dict.fromkeys(name.partition(":")[0] for name in names)
    todo = [known[base] for base in bases if base in known and not is_current(known[base])]
    if not todo or os.environ.get("LOAM_NO_SETUP"):
        return
    _announce(todo)
    for definition in todo:
        assert definition.recipe is not None
        compilation.make(definition.name, definition.recipe, definition.source)


def ensure_own(names: Sequence[str], preset: str = "release") -> None:
    """Build those of the named allocators that this checkout makes itself, where they are missing or out of date.

    Like a workload's executable: under --no-setup, too.
    names: as for ensure; preset: the build; raises: LoamError as build.ensure_built does
    """
    from loam_lab.setup import build as cmake

    known = registry.definitions()
    bases = dict.fromkeys(name.partition(":")[0] for name in names)
    targets = [target for base in bases if base in known for target in known[base].targets]
    if targets:
        cmake.ensure_built(targets, preset)


def is_current(definition: Definition) -> bool:
    """Whether an allocator that comes as sources was built by its recipe as it stands now."""
    assert definition.recipe is not None
    installed = recipe.installed(definition.name, definition.recipe, definition.source)
    return installed is not None and installed.current


def _announce(todo: Sequence[Definition]) -> None:
    if not todo:
        return
    sources = [(definition.name, source) for definition in todo if (source := definition.recipe) is not None]
    total = sum(source.build_s for _, source in sources)
    console.note(
        f"building {len(sources)} allocators into {recipe.folder()}, about {max(total, 1):.0f} s on two cores:"
    )
    width = max(len(name) for name, _ in sources)
    for name, source in sources:
        console.note(f"  {name:<{width}}  from {source.origin}, {source.license}, {source.build_s:.0f} s")
