"""The allocators that can be measured: one TOML file each, in the tree, in the user's settings, or on a search path.

A name is NAME or NAME:key=value[:key=value...]; where a folder NAME lies beside NAME.toml, each file PRESET.toml in it gives
settings a name: NAME:PRESET or NAME:PRESET:key=value[...]. The settings a file offers say into which environment variable a value
goes. Loading an allocator finds its object file and identifies it, so what cannot be measured fails here. What a file says under
[on."debian 13"] stands for its other keys on a system with that release's packages.
"""

from __future__ import annotations

import functools
import re
import tomllib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from loam_lab.base import paths
from loam_lab.base.errors import LoamError, unknown
from loam_lab.setup import system
from loam_lab.subjects.allocators import identify, recipe

_BUILD = "build:"  # begins a candidate that is an entry of loam-paths.json
NAME_PATTERN = re.compile(r"[a-z0-9][a-z0-9._+-]*")
NAME_ALLOWED = "small letters, digits and . _ + - only, a letter or digit first"
_KEYS = {
    "summary", "libc", "package", "candidates", "companions", "soname", "symbols", "order", "default", "variants",
    "forwards", "version", "settings", "source", "prefixes",
}  # fmt: skip


_SETTING_KEYS = {
    "environment", "value", "join", "type", "min", "max", "choices", "help", "search", "proof", "default", "transactions",
}  # fmt: skip


@dataclass(frozen=True)
class Setting:
    """A setting of an allocator and the environment variable that carries it.

    value: text with one {} for the value; join: separator where several settings share the variable ("" = alone)
    kind: "integer" (minimum, maximum) or "choice" (choices maps what the user types to what the allocator reads)
    search: values worth trying, as the user would type them; proof: how the allocator itself tells the value (settings.py)
    default: the value that it has where none is given, "" where nobody says; transactions: values that are what they say
    only on a machine with hardware transactions
    """

    name: str
    environment: str
    value: str
    join: str
    kind: str
    minimum: int
    maximum: int
    choices: tuple[tuple[str, str], ...]
    help: str
    search: tuple[str, ...] = ()
    proof: str = ""
    default: str = ""
    transactions: tuple[str, ...] = ()

    @property
    def levels(self) -> tuple[str, ...]:
        """Values to compare: those worth trying, else every choice."""
        return self.search or tuple(key for key, _ in self.choices)

    def text(self, owner: str, given: str) -> str:
        """The text for the environment variable.

        raises: LoamError if the value is out of range or no choice
        """
        subject = f"--allocator {owner}:{self.name}"
        if self.kind == "choice":
            choices = dict(self.choices)
            if given not in choices:
                raise LoamError(subject, given, f"must be one of {', '.join(choices)}", self.help)
            return self.value.format(choices[given])
        if not re.fullmatch(r"-?[0-9]+", given) or not self.minimum <= int(given) <= self.maximum:
            raise LoamError(subject, given, f"must be an integer from {self.minimum} to {self.maximum}", self.help)
        return self.value.format(int(given))


@dataclass(frozen=True)
class Allocator:
    """An allocator ready to be measured.

    name: as asked for, settings included; base: without settings
    path: the object that provides malloc; None = libc's own, nothing is preloaded
    libraries: absolute paths in LD_PRELOAD order
    environment: what the settings turn into
    version, soname, build_id, sha256, machine: of the object (for None: of the libc that runs the lab)
    package: Debian package, "" where it comes from elsewhere
    symbols: names beyond the required family that the object must export
    forwards: "glibc" if it is declared to hand its requests to libc, else None
    default: one of the allocators measured when none is named
    source: the TOML file it comes from
    front: a library that stands before it and hands every call on, "" for none
    """

    name: str
    base: str
    settings: dict[str, str]
    path: str | None
    libraries: tuple[str, ...]
    environment: dict[str, str]
    version: str
    soname: str
    package: str
    forwards: str | None
    default: bool
    build_id: str = ""
    sha256: str = ""
    machine: str = ""
    summary: str = ""
    symbols: tuple[str, ...] = ()
    source: str = ""
    front: str = ""


@dataclass(frozen=True)
class Definition:
    """One TOML file, checked but not yet looked up on this machine.

    prefixes: how the names of all environment variables begin that the allocator reads, beside those of its settings
    preset: settings that it has unless others are given
    """

    name: str
    source: Path
    summary: str
    libc: bool
    package: str
    candidates: tuple[str, ...]
    companions: tuple[str, ...]
    soname: str
    symbols: tuple[str, ...]
    order: int
    default: bool
    variants: tuple[str, ...]
    forwards: str | None
    version: identify.VersionProbe
    settings: dict[str, Setting] = field(default_factory=dict)
    recipe: recipe.Source | None = None
    prefixes: tuple[str, ...] = ()
    preset: dict[str, str] = field(default_factory=dict)

    @property
    def targets(self) -> list[str]:
        """Names in loam-paths.json of what this checkout's own build makes for the allocator."""
        return [name.removeprefix(_BUILD) for name in self.candidates if name.startswith(_BUILD)]


def user_folder() -> Path:
    """Where `loam allocators add` keeps its files: ~/.config/loam/allocators, or below XDG_CONFIG_HOME."""
    return paths.allocator_folders()[-1]


def definitions() -> dict[str, Definition]:
    """Every allocator known by name, in the order in which listings show them.

    raises: LoamError if a file is damaged, naming file and key
    """
    by_name: dict[str, Definition] = {}
    for folder in paths.allocator_folders():
        for file in sorted(folder.glob("*.toml")) if folder.is_dir() else ():
            if file.stem not in by_name:  # the tree's own cannot be replaced under the same name
                by_name[file.stem] = _read(file, file.stat().st_mtime_ns)
                for preset in sorted((folder / file.stem).glob("*.toml")):
                    by_name[f"{file.stem}:{preset.stem}"] = _preset(by_name[file.stem], preset)
    return dict(sorted(by_name.items(), key=lambda item: (item[1].order, item[0])))


def all_names() -> list[str]:
    """Every name, each followed by the variants that its file lists."""
    return [name for definition in definitions().values() for name in _names(definition)]


def defaults() -> list[str]:
    """The allocators measured when none is named, whether installed or not."""
    return [name for definition in definitions().values() if definition.default for name in _names(definition)]


def load(name: str, preset: str = "release") -> Allocator:
    """Find an allocator on this machine.

    name: NAME or NAME:key=value[:key=value...]; preset: the build of what this checkout makes itself
    raises: LoamError for an unknown name or setting (with the nearest), a value out of range, an object that is missing
            or cannot be preloaded here
    """
    base, settings, environment = check(name)
    definition = definitions()[base]
    full_name = ":".join([base, *(f"{key}={value}" for key, value in settings.items())])
    common: dict[str, Any] = {
        "name": full_name, "base": base, "settings": settings, "environment": environment,
        "package": definition.package, "forwards": definition.forwards, "default": full_name in _names(definition)
        and definition.default, "summary": definition.summary, "symbols": definition.symbols,
        "source": str(definition.source),
    }  # fmt: skip
    if definition.libc:
        own = identify.identify(libc_path(), definition.version)
        return Allocator(
            path=None, libraries=(), version=own.version, soname=own.soname, build_id=own.build_id, sha256=own.sha256,
            machine=own.machine, **common,
        )  # fmt: skip
    file = _find(definition, preset)
    parsed = identify.check_allocator(file)
    missing = [symbol for symbol in definition.symbols if symbol not in parsed]
    if missing:
        raise LoamError(
            str(definition.source),
            base,
            f"{file} does not export {', '.join(missing)}",
            "is it another library of the same name?",
        )
    identity = identify.identify(file, definition.version)
    if definition.recipe is not None and not identity.version:
        identity = replace(identity, version=_built(definition, definition.recipe).release)
    if definition.soname and identity.soname and identity.soname != definition.soname:
        raise LoamError(
            str(definition.source), base, f"{file} has the soname {identity.soname}, not {definition.soname}",
            "correct soname or candidates",
        )  # fmt: skip
    libraries = (str(file), *(str(_companion(definition, file, other)) for other in definition.companions))
    return Allocator(
        path=str(file), libraries=libraries, version=identity.version, soname=identity.soname, build_id=identity.build_id,
        sha256=identity.sha256, machine=identity.machine, **common,
    )  # fmt: skip


def check(name: str, option: str = "--allocator") -> tuple[str, dict[str, str], dict[str, str]]:
    """Refuse a name or a setting that no file has; this machine is not looked at.

    option: where it was named; returns: the base name, the settings given, and the variables that they make
    raises: LoamError with the nearest name, or naming the values that a setting takes
    """
    base, settings = split(name)
    known = definitions()
    if base not in known:
        raise unknown(option, base, known, "allocator")
    return base, settings, _environment(known[base], {**known[base].preset, **settings})


def split(name: str) -> tuple[str, dict[str, str]]:
    """NAME:key=value:... or NAME:PRESET:key=value:... as the base name, its preset included, and its settings.

    raises: LoamError if a setting has no "=" or comes twice
    """
    base, *parts = name.split(":")
    if parts and "=" not in parts[0] and any(known.startswith(f"{base}:") for known in definitions()):
        base = f"{base}:{parts.pop(0)}"
    settings: dict[str, str] = {}
    for part in parts:
        key, equals, value = part.partition("=")
        if not equals or not key or not value:
            raise LoamError(
                "--allocator", name, f'the setting "{part}" is not of the form key=value', "as in glibc:tcache=0"
            )
        if key in settings:
            raise LoamError("--allocator", name, f"the setting {key} is given twice", "give it once")
        settings[key] = value
    return base, settings


def values(name: str) -> dict[str, str]:
    """The value of each setting of an allocator as far as it is known: given, of its preset, or its default.

    raises: LoamError as load does for a name that no file has
    """
    base, given = split(name)
    known = definitions()
    if base not in known:
        raise unknown("--allocator", base, known, "allocator")
    settings = known[base].settings
    defaults = {key: setting.default for key, setting in settings.items() if setting.default}
    return {**defaults, **known[base].preset, **given}


def setting_variables() -> frozenset[str]:
    """Environment variables that any known setting uses: what a run must not inherit from the user's shell."""
    return frozenset(s.environment for d in definitions().values() for s in d.settings.values())


def is_read_by_some(variable: str) -> bool:
    """Whether a known allocator reads an environment variable: it has a setting of that name, or a prefix of it."""
    prefixes = tuple(prefix for definition in definitions().values() for prefix in definition.prefixes)
    return variable in setting_variables() or variable.startswith(prefixes)


@functools.cache
def libc_path() -> str:
    """The libc.so.6 that is mapped in this very process: the one under every program the lab starts.

    raises: LoamError if this process runs on another libc
    """
    for line in Path("/proc/self/maps").read_text().splitlines():
        path = line.partition("/")[2]
        if Path(path).name == "libc.so.6":
            return "/" + path
    raise LoamError("libc", None, "the lab's Python does not use glibc", "use Debian's python3")


def _names(definition: Definition) -> list[str]:
    return [definition.name, *(f"{definition.name}:{variant}" for variant in definition.variants)]


def _environment(definition: Definition, settings: dict[str, str]) -> dict[str, str]:
    environment: dict[str, str] = {}
    for key, value in settings.items():
        if key not in definition.settings:
            raise unknown(
                f"--allocator {definition.name}: setting", key, definition.settings, f"setting of {definition.name}"
            )
        setting = definition.settings[key]
        text = setting.text(definition.name, value)
        before = environment.get(setting.environment)
        environment[setting.environment] = text if before is None else before + setting.join + text
    return environment


def _built(definition: Definition, source: recipe.Source) -> recipe.Installed:
    """raises: LoamError if it was not built, or by another recipe than the one that stands now"""
    how = f"run ./loam allocators build {definition.name}"
    installed = recipe.installed(definition.name, source, definition.source)
    if installed is None:
        raise LoamError("--allocator", definition.name, "is not built yet", how)
    if not installed.current:
        raise LoamError("--allocator", definition.name, f"was built before {definition.source.name} changed", how)
    return installed


def _find(definition: Definition, preset: str) -> Path:
    if definition.recipe is not None:
        return _built(definition, definition.recipe).path
    for candidate in definition.candidates:
        file = _candidate(definition, candidate, preset)
        if file is not None and file.exists():
            return file
    where = ", ".join(definition.candidates)
    if definition.package:
        raise LoamError(
            "--allocator",
            definition.name,
            f"Debian's package {definition.package} is not installed",
            "run ./loam setup",
        )
    if definition.targets:
        raise LoamError(
            "--allocator", definition.name, "is not built yet", "a command that measures it builds it; or ./loam setup"
        )
    raise LoamError(
        "--allocator", definition.name, f"no such file: {where}", f"correct candidates in {definition.source}"
    )


def _candidate(definition: Definition, candidate: str, preset: str) -> Path | None:
    """A plain file name is looked for in the library folders; build:KEY is an entry of loam-paths.json."""
    if candidate.startswith(_BUILD):
        built = paths.load_paths(preset).get("libraries", {}).get(candidate.removeprefix(_BUILD))
        return Path(built) if built else None
    if "/" not in candidate:
        return paths.find_library(candidate)
    return (definition.source.parent / Path(candidate).expanduser()).absolute()


def _companion(definition: Definition, file: Path, name: str) -> Path:
    beside = file.parent / name
    if not beside.exists():
        raise LoamError("--allocator", definition.name, f"{beside} is missing", "it belongs to the same package")
    return beside


@functools.lru_cache(maxsize=256)
def _read(file: Path, changed_ns: int) -> Definition:
    """changed_ns is part of the key only: a file that changes is read again."""
    try:
        content = system.here().own(tomllib.loads(file.read_text()))
    except (OSError, ValueError, TypeError) as problem:
        raise LoamError(str(file), None, f"cannot be read: {problem}", "correct or remove it") from None
    _check_name(file, "an allocator")
    wrong = sorted(set(content) - _KEYS)
    if wrong:
        raise unknown(str(file), wrong[0], _KEYS, "key of an allocator file")
    try:
        definition = _definition(file, content)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise LoamError(
            str(file), None, f"wrong or missing key: {problem}", "compare with allocators/jemalloc.toml"
        ) from None
    if not definition.libc and not definition.candidates and definition.recipe is None:
        raise LoamError(str(file), None, "names no candidates", 'add candidates = ["libX.so"]')
    if definition.forwards not in (None, "glibc"):
        raise LoamError(str(file), definition.forwards, "forwards can only name glibc", "remove the line")
    return definition


def _check_name(file: Path, what: str) -> None:
    if not NAME_PATTERN.fullmatch(file.stem):
        raise LoamError(str(file), None, f'"{file.stem}" is not the name of {what}: {NAME_ALLOWED}', "rename the file")


def _preset(of: Definition, file: Path) -> Definition:
    """A file with a summary, what it stands for, and the settings that make it.

    raises: LoamError if the file is damaged or a setting is none of the allocator's
    """
    _check_name(file, "a preset")
    try:
        content = tomllib.loads(file.read_text())
        preset = {str(key): str(value) for key, value in content["settings"].items()}
        summary = f"{content['summary']} (stands for {content['stands_for']})"
    except (OSError, ValueError, KeyError, AttributeError) as problem:
        raise LoamError(
            str(file), None, f"cannot be read: {problem}", "it has summary, stands_for and [settings]"
        ) from None
    if wrong := sorted(set(content) - {"summary", "stands_for", "settings"}):
        raise unknown(str(file), wrong[0], ("summary", "stands_for", "settings"), "key of a preset")
    made = replace(
        of, name=f"{of.name}:{file.stem}", source=file, summary=summary, preset=preset, variants=(), default=False
    )
    _environment(made, preset)
    return made


def _definition(file: Path, content: dict[str, Any]) -> Definition:
    version = content.get("version", {})
    return Definition(
        name=file.stem,
        source=file,
        summary=str(content.get("summary", "")),
        libc=bool(content.get("libc", False)),
        package=str(content.get("package", "")),
        candidates=_strings(content, "candidates"),
        companions=_strings(content, "companions"),
        soname=str(content.get("soname", "")),
        symbols=_strings(content, "symbols"),
        order=int(content.get("order", 1000)),
        default=bool(content.get("default", False)),
        variants=_strings(content, "variants"),
        forwards=content.get("forwards"),
        version=identify.VersionProbe(
            pattern=recipe.expression(str(version.get("pattern", "")), "[version] pattern"),
            call=str(version.get("call", "")),
            object=str(version.get("object", "")),
        ),
        settings={key: _setting(key, value) for key, value in content.get("settings", {}).items()},
        recipe=recipe.parse(content["source"]) if "source" in content else None,
        prefixes=_strings(content, "prefixes"),
    )


def _strings(content: dict[str, Any], key: str) -> tuple[str, ...]:
    value = content.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise TypeError(f"{key} must be a list of strings")
    return tuple(value)


def _setting(name: str, content: dict[str, Any]) -> Setting:
    kind = content["type"]
    if kind not in ("integer", "choice"):
        raise ValueError(f"type of setting {name} must be integer or choice")
    if unknown_keys := content.keys() - _SETTING_KEYS:
        raise ValueError(f"setting {name} has unknown keys: {', '.join(sorted(unknown_keys))}")
    return Setting(
        name=name,
        environment=content["environment"],
        value=content["value"],
        join=content.get("join", ""),
        kind=kind,
        minimum=int(content["min"]) if kind == "integer" else 0,
        maximum=int(content["max"]) if kind == "integer" else 0,
        choices=tuple(content["choices"].items()) if kind == "choice" else (),
        help=content.get("help", ""),
        search=tuple(str(value) for value in content.get("search", [])),
        proof=content.get("proof", ""),
        default=str(content.get("default", "")),
        transactions=tuple(str(value) for value in content.get("transactions", [])),
    )
