"""The lines that put an allocator into a program without loam: for a shell, a systemd unit, a Dockerfile."""

from __future__ import annotations

import shlex
from collections.abc import Sequence


def variables(name: str, before_own: Sequence[str] = ()) -> dict[str, str] | None:
    """The environment variables by which a program gets an allocator; None where it is not known on this machine.

    before_own: of the result of bench, what libc needs to serve a program that is linked with another allocator
    """
    from loam_lab.subjects.allocators import registry

    try:
        allocator = registry.load(name)
    except Exception:  # a result may be read where the allocator is not installed
        return None
    libraries = list(allocator.libraries)
    if allocator.path is None:
        libraries = list(before_own)
    return {**allocator.environment, **({"LD_PRELOAD": ":".join(libraries)} if libraries else {})}


def shell(name: str, command: str, before_own: Sequence[str] = ()) -> str:
    """The shell line that runs a command with an allocator."""
    words = [f"{key}={shlex.quote(value)}" for key, value in (variables(name, before_own) or {}).items()]
    return " ".join([*words, command])


def lines(name: str, command: str, before_own: Sequence[str] = ()) -> dict[str, str]:
    """All forms by their place; empty where nothing has to be set."""
    environment = variables(name, before_own)
    if not environment:
        return {}
    assigned = [f"{key}={_quoted(value)}" for key, value in environment.items()]
    package = _package(name)
    install = f"RUN apt-get update && apt-get install -y {package}\n" if package else ""
    return {
        "shell": shell(name, command, before_own),
        "systemd unit, [Service]": "\n".join(f'Environment="{key}={value}"' for key, value in environment.items()),
        "Dockerfile": f"{install}ENV {' '.join(assigned)}",
    }


def _package(name: str) -> str:
    from loam_lab.subjects.allocators import registry

    return registry.definitions()[registry.split(name)[0]].package


def _quoted(value: str) -> str:
    return value if not set(value) & set(" \t\"'$") else '"' + value.replace('"', '\\"') + '"'
