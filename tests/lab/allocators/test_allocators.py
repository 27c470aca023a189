"""The registry of allocators, what object files say about themselves, and the commands add, remove and verify."""

from __future__ import annotations

import contextlib
import json
import os
import struct
import subprocess
import tomllib
import warnings
from collections.abc import ItemsView, Iterator
from pathlib import Path

import pytest
from interposing import BUMP, MAIN, SHIM, compile_c, library, tool

import loam_lab
from loam_lab.base import console, paths
from loam_lab.base.errors import LoamError
from loam_lab.cli import main
from loam_lab.setup import system
from loam_lab.subjects.allocators import building, elf, identify, registry

SIX = ["glibc", "glibc:tcache=0", "jemalloc", "tcmalloc", "tbb", "mimalloc"]
REAL = SIX[2:]


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Neither the user's allocators nor the user's cache."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LOAM_ALLOCATOR_PATH", raising=False)
    console.out.cache_clear()
    console.err.cache_clear()
    yield
    console.out.cache_clear()
    console.err.cache_clear()


def error_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    capsys.readouterr()
    assert main.run([str(argument) for argument in arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.startswith("error: ") and captured.err.count("\n") == 1
    return captured.err


# ---- registry ----


def test_the_six_are_the_defaults_and_can_be_loaded() -> None:
    assert registry.defaults() == SIX
    for name in SIX:
        loaded = registry.load(name)
        assert loaded.name == name and loaded.default and loaded.version and loaded.soname
        assert len(loaded.sha256) == 64 and len(loaded.build_id) == 40
        assert loaded.machine == os.uname().machine
        assert (loaded.path is None) == (loaded.base == "glibc") == (not loaded.libraries)
        assert all(Path(path).is_absolute() and Path(path).exists() for path in loaded.libraries)


def test_every_file_of_the_tree_has_what_a_reader_needs() -> None:
    releases = [system.of({"ID": "debian", "VERSION_ID": number}, "apt-get") for number in ("12", "13")]
    files = (paths.root() / "allocators").glob("*.toml")
    for content in (there.own(tomllib.loads(file.read_text())) for file in files for there in releases):
        assert content["summary"] and (content.get("version") or content["source"]["release"])
        built_here = any(name.startswith("build:") for name in content.get("candidates", []))
        assert content.get("libc") or content.get("package") or built_here or content["source"]["license"]
        for setting in content.get("settings", {}).values():
            assert setting["help"] and "{}" in setting["value"]


def test_the_page_of_allocators_names_those_that_are_there_and_each_of_their_settings() -> None:
    """A new allocator is one file, so its row may be missing."""
    page = (paths.root() / "docs/allocators.md").read_text()
    table = page[page.index("| `glibc` |") :].partition("\n\n")[0]
    known = registry.definitions()
    named = [row.split("`")[1] for row in table.splitlines()]
    assert len(named) > 10 and set(named) <= set(known), set(named) - set(known)
    for name, definition in known.items():
        if f"| `{name}` |" not in page:
            warnings.warn(f"docs/allocators.md has no row for {name}", stacklevel=1)
            continue
        for setting in definition.settings:
            assert f"`{setting}`" in page or f"`{setting}=" in page or f"`{setting}` (" in page, f"{name}:{setting}"


def test_another_release_of_debian_has_another_object_with_settings_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Debian 13 has mimalloc 3 under the name by which Debian 12 has mimalloc 2; no file of one serves as the other's."""
    monkeypatch.setattr(registry, "_read", registry._read.__wrapped__)
    release = {"ID": "debian", "VERSION_ID": "12"}
    monkeypatch.setattr(system, "here", lambda: system.of(release, "apt-get"))
    before = registry.definitions()["mimalloc"]
    assert (before.package, before.soname) == ("libmimalloc2.0", "libmimalloc.so.2")
    release["VERSION_ID"] = "13"
    now = registry.definitions()["mimalloc"]
    assert (now.package, now.soname, now.default) == ("libmimalloc3", "libmimalloc.so.3", True)
    assert set(now.candidates).isdisjoint(before.candidates) and now.version == before.version
    assert now.settings["purge_delay"].environment == "MIMALLOC_PURGE_DELAY" and "purge" not in now.settings
    page = (paths.root() / "docs/allocators.md").read_text()
    assert f"`{now.package}`" in page and all(f"`{setting}`" in page for setting in now.settings)
    extra = library(tmp_path, "bump.so", BUMP).parent
    (extra / "nine.toml").write_text(f'candidates = ["no.so"]\n[on."debian 13"]\ncandidates = ["{extra}/bump.so"]\n')
    monkeypatch.setenv("LOAM_ALLOCATOR_PATH", str(extra))
    assert registry.load("nine").path == f"{extra}/bump.so"
    release["VERSION_ID"] = "12"
    with pytest.raises(LoamError, match=r"no such file: no\.so"):
        registry.load("nine")


def test_settings_become_environment_variables() -> None:
    assert registry.load("glibc:tcache=0").environment == {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    both = registry.load("glibc:tcache=0:arenas=2")
    assert both.environment == {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0:glibc.malloc.arena_max=2"}
    assert both.base == "glibc" and not both.default and both.settings == {"tcache": "0", "arenas": "2"}
    assert registry.load("jemalloc:narenas=1:tcache=0").environment == {"MALLOC_CONF": "narenas:1,tcache:false"}
    assert "GLIBC_TUNABLES" in registry.setting_variables()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("jemaloc", "did you mean jemalloc?"),
        ("glibc:tcahce=0", "did you mean tcache?"),
        ("glibc:tcache", "not of the form key=value"),
        ("glibc:tcache=", "not of the form key=value"),
        ("glibc:tcache=-1", "from 0 to 65535"),
        ("glibc:tcache=many", "from 0 to 65535"),
        ("glibc:tcache=0:tcache=1", "given twice"),
        ("jemalloc:tcache=2", "one of 0, 1"),
        ("", "not the name of an allocator"),
    ],
)
def test_bad_names_say_what_to_do(name: str, says: str) -> None:
    with pytest.raises(LoamError) as caught:
        registry.load(name)
    assert says in caught.value.line()


def test_files_of_the_user_and_of_a_search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = library(tmp_path, "bump.so", BUMP)
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "beside.toml").write_text('candidates = ["../bump.so"]\n')
    (extra / "glibc.toml").write_text('candidates = ["../bump.so"]\n')  # cannot replace the tree's own
    monkeypatch.setenv("LOAM_ALLOCATOR_PATH", str(extra))
    assert Path(registry.load("beside").libraries[0]).samefile(made)
    assert "beside" in registry.all_names() and "beside" not in registry.defaults()
    assert registry.load("glibc").path is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("candidates = [", "cannot be read"),
        ('candidate = ["x.so"]', "did you mean candidates?"),
        ("candidates = 3", "candidates must be a list of strings"),
        ('summary = "nothing"', "names no candidates"),
        ('candidates = ["x.so"]\nforwards = "musl"', "forwards can only name glibc"),
        ('candidates = ["x.so"]\n[settings.a]\ntype = "float"', "must be integer or choice"),
        ('candidates = ["x.so"]\n[version]\npattern = "("', "[version] pattern is no regular expression: missing )"),
        ('[source]\ncrate = "x"', "source.object is missing"),
        ('candidates = ["x.so"]\n[version]\npattern = "x"', "[version] pattern has no group"),
        (
            '[source]\nobject = "x.so"\nlicense = "l"\ncrate = "x"\nversion = "1"\nfiles_from = "b"\npattern = "["',
            "source.pattern is no regular expression: unterminated",
        ),
        ('candidates = ["x.so"]\n[settings.a]\ntype = "integer"', "wrong or missing key"),
    ],
)
def test_damaged_files_are_named(text: str, says: str) -> None:
    registry.user_folder().mkdir(parents=True)
    file = registry.user_folder() / "mine.toml"
    file.write_text(text)
    with pytest.raises(LoamError) as caught:
        registry.load("mine")
    assert says in caught.value.line() and str(file) in caught.value.line()


@pytest.mark.parametrize(("place", "what"), [("My Alloc", "an allocator"), ("mine/2 small", "a preset")])
def test_a_file_whose_name_no_command_could_take_says_what_a_name_is(place: str, what: str) -> None:
    registry.user_folder().joinpath("mine").mkdir(parents=True)
    (registry.user_folder() / "mine.toml").write_text('candidates = ["x.so"]')
    file = registry.user_folder() / f"{place}.toml"
    file.write_text('candidates = ["x.so"]')
    with pytest.raises(LoamError) as caught:
        registry.definitions()
    assert caught.value.line() == (
        f'{file}: "{file.stem}" is not the name of {what}: small letters, digits and . _ + - only, a letter or digit first '
        "(rename the file)"
    )


def test_what_is_not_installed_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "find_library", lambda name: None)
    with pytest.raises(LoamError, match="libjemalloc2 is not installed"):
        registry.load("jemalloc")


# ---- object files ----


def test_identity_agrees_with_readelf_and_sha256sum() -> None:
    if tool("readelf") is None:
        pytest.skip("no readelf here")
    for name in REAL:
        loaded = registry.load(name)
        assert loaded.path is not None
        shown = subprocess.run(["readelf", "-dn", loaded.path], capture_output=True, text=True, check=True).stdout
        assert f"Build ID: {loaded.build_id}" in shown and f"[{loaded.soname}]" in shown
        summed = subprocess.run(["sha256sum", loaded.path], capture_output=True, text=True, check=True).stdout
        assert summed.split()[0] == loaded.sha256
        symbols = subprocess.run(
            ["nm", "-D", "--defined-only", loaded.path], capture_output=True, text=True, check=True
        )
        names = {line.split()[-1].partition("@")[0] for line in symbols.stdout.splitlines() if line}
        assert names <= elf.read(Path(loaded.path)).exported | {""}


def test_identity_follows_a_changed_file(tmp_path: Path) -> None:
    file = library(tmp_path, "a.so", BUMP)
    first = identify.identify(file)
    file.write_bytes(library(tmp_path, "b.so", SHIM).read_bytes())
    assert identify.identify(file).sha256 != first.sha256


def test_a_damaged_cache_costs_time_only(tmp_path: Path) -> None:
    file = library(tmp_path, "a.so", BUMP)
    first = identify.identify(file)
    cache = tmp_path / "cache/loam"
    (stored,) = cache.iterdir()
    stored.write_text('{"broken')
    identify._cache_read_once.cache_clear()
    identify._identify_cached.cache_clear()
    assert identify.identify(file) == first


def test_the_cache_may_grow_while_it_is_written() -> None:
    class Growing(dict[str, str]):
        """What another thread does while the entry is written."""

        def items(self) -> ItemsView[str, str]:
            identify._cache_read()["another"] = "entry"
            return super().items()

    identify._cache_write("one", Growing(path="a.so"))
    assert json.loads(identify._cache_file().read_text()) == {"one": {"path": "a.so"}}


def test_damaged_elf_files_never_crash_the_reader(tmp_path: Path) -> None:
    whole = library(tmp_path, "whole.so", BUMP).read_bytes()
    file = tmp_path / "damaged.so"
    for length in (0, 1, 63, 64, 100, 1000, len(whole) // 2, len(whole) - 1):
        file.write_bytes(whole[:length])
        with contextlib.suppress(elf.NotElf):
            elf.read(file)
    for at in range(16, 64):  # every byte of the header turned over
        changed = bytearray(whole)
        changed[at] ^= 0xFF
        file.write_bytes(changed)
        with contextlib.suppress(elf.NotElf):
            elf.read(file)


# ---- add, remove, verify ----


def test_add_list_verify_remove(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = library(tmp_path, "bump.so", BUMP, "-Wl,-soname,bump.so.1")
    assert main.run(["allocators", "add", "mine", str(made)]) == 0
    assert (tmp_path / "config/loam/allocators/mine.toml").is_file()
    assert registry.load("mine").soname == "bump.so.1"
    capsys.readouterr()
    assert main.run(["list", "allocators", "--json"]) == 0
    listed = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)["allocators"]}
    assert listed["mine"]["available"] and list(listed)[:6] == SIX
    assert main.run(["allocators", "verify", "mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["status"] == "proven"
    assert main.run(["allocators", "remove", "mine", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "mine"
    assert made.exists() and "mine" not in registry.all_names()
    assert "not the name of an allocator" in error_of(capsys, "allocators", "verify", "mine")


def test_add_refuses_what_cannot_serve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = compile_c(tmp_path, "program", MAIN)
    text = tmp_path / "text.so"
    text.write_text("no object file, but long enough to hold the header of one; " * 3)
    foreign = bytearray(library(tmp_path, "bump.so", BUMP).read_bytes())
    foreign[18:20] = struct.pack("<H", 183 if os.uname().machine == "x86_64" else 62)
    (tmp_path / "foreign.so").write_bytes(foreign)
    (tmp_path / "object.o").write_bytes(b"")
    closed = tmp_path / "closed.so"
    closed.write_bytes(bytes(foreign))
    cases: list[tuple[Path, str]] = [
        (tmp_path / "absent.so", "no such file"),
        (tmp_path, "not a regular file"),
        (text, "no ELF file"),
        (tmp_path / "object.o", "too short"),
        (program, "an executable, no shared object"),
        (compile_c(tmp_path, "fixed", MAIN, "-no-pie"), "an executable, no shared object"),
        (compile_c(tmp_path, "part.o", MAIN, "-c"), "of kind relocatable"),
        (tmp_path / "foreign.so", "built for"),
        (library(tmp_path, "empty.so", "int answer = 42;"), "defines no malloc"),
        (library(tmp_path, "hidden.so", BUMP, '-DEXPORT=__attribute__((visibility("hidden")))'), "defines no malloc"),
        (library(tmp_path, "partial.so", BUMP, "-DNO_ALIGNED"), "posix_memalign, aligned_alloc, memalign"),
    ]
    if os.uname().machine == "x86_64":
        narrow = library(tmp_path, "narrow.so", "void* malloc(unsigned n) { return 0; }", "-m32", "-nostdlib")
        cases.append((narrow, "with 32 bits"))
    for path, says in cases:
        assert says in error_of(capsys, "allocators", "add", "mine", path), path
    assert "mine" not in registry.all_names()


def test_add_refuses_names_that_are_taken_or_malformed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = library(tmp_path, "bump.so", BUMP)
    assert "already the allocator of" in error_of(capsys, "allocators", "add", "jemalloc", made)
    for name in ("Mine", "a:b", "a/b", "a,b", ""):
        assert "not an allocator name" in error_of(capsys, "allocators", "add", name, made)
    assert main.run(["allocators", "add", "mine", str(made)]) == 0
    assert "allocators remove mine" in error_of(capsys, "allocators", "add", "mine", made)


def test_remove_touches_only_the_users_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert "only what add registered" in error_of(capsys, "allocators", "remove", "jemalloc")
    assert "not the name of" in error_of(capsys, "allocators", "remove", "nothing")
    assert "not the name of" in error_of(capsys, "allocators", "remove", "../glibc")


def test_add_says_where_it_cannot_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = library(tmp_path, "bump.so", BUMP)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "file"))
    assert "cannot be written" in error_of(capsys, "allocators", "add", "mine", made)


def test_the_checkout_s_own_is_built_where_it_is_named_and_never_a_default() -> None:
    assert "loam" in registry.all_names() and "loam" not in registry.defaults()
    building.ensure(["loam:hardened=1"])
    loaded = registry.load("loam:hardened=1")
    assert loaded.path == paths.load_paths()["libraries"]["malloc"] and loaded.libraries == (loaded.path,)
    assert loaded.environment == {"LOAM_MALLOC_HARDENED": "1"}
    assert loaded.version == loam_lab.__version__


def test_what_is_not_built_says_so(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(paths, "load_paths", lambda _="release": {"libraries": {}})
    with pytest.raises(LoamError, match=r"loam: is not built yet \(a command that measures it builds it"):
        registry.load("loam")
    assert main.run(["list", "allocators"]) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.strip().startswith("loam ")]
    assert "built on first use" in line and "Loam's own" in line and "missing" not in line


def test_our_own_is_never_missing_before_the_first_build(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(paths, "build_folder", lambda preset="release": tmp_path / preset)
    assert main.run(["list", "allocators", "--json"]) == 0
    (own,) = [item for item in json.loads(capsys.readouterr().out)["allocators"] if item["name"] == "loam"]
    assert not own["available"] and own["built_here"]


@pytest.mark.parametrize("name", [*SIX, "glibc:tcache=3", "loam", "loam:hardened=1"])
def test_verify_proves_the_real_ones(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["allocators", "verify", name, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "proven" and all(check["passed"] for check in document["checks"])
    if name == "loam:hardened=1":
        assert document["checks"][-1]["what"] == "the allocator itself says hardened=1"
    if name.startswith("glibc:"):
        effect = document["checks"][-1]
        assert f"grew by {64 * (7 - int(name[-1]))} bytes" in effect["detail"]


def test_verify_refutes_a_forwarder_until_it_is_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shim = library(tmp_path, "shim.so", SHIM)
    assert main.run(["allocators", "add", "shim", str(shim)]) == 0
    capsys.readouterr()
    assert main.run(["allocators", "verify", "shim", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["status"] == "wrong"
    with (registry.user_folder() / "shim.toml").open("a") as stream:
        stream.write('forwards = "glibc"\n')
    assert main.run(["allocators", "verify", "shim"]) == 0


def test_verify_looks_into_a_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = compile_c(tmp_path, "program", MAIN)
    assert main.run(["allocators", "verify", "tbb", "--json", "--", str(program)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["processes"][0]["exe"] == str(program) and document["exit_code"] == 0
    static = compile_c(tmp_path, "static", MAIN, "-static")
    assert main.run(["allocators", "verify", "tbb", "--", str(static)]) == 1
    assert "linked statically" in capsys.readouterr().out
    assert "no such program" in error_of(capsys, "allocators", "verify", "tbb", "--", "./nothing-here")
