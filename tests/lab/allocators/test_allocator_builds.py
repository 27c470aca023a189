"""Allocators from sources: fetched by a made-up cargo, checked, compiled, and never found half-made."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import tomllib
from pathlib import Path

import pytest
from interposing import BUMP

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.cli import main
from loam_lab.setup import debian
from loam_lab.subjects.allocators import building, compilation, recipe, registry

# Writes down what it was asked, and "vendors" the prepared tree.
CARGO = """#!/bin/sh
echo "$@" >>"$DIARY"
case " $* " in
  *" --version "*) echo "cargo $CARGO_SAYS (made up)"; exit 0 ;;
esac
[ -f Cargo.toml ] && [ -f stubs/cc/Cargo.toml ] && [ -f empty.rs ] || { echo "error: no manifest" >&2; exit 99; }
[ -z "$FAILS" ] || { printf '%b\\n' "$FAILS" >&2; exit 101; }
for last in "$@"; do :; done
cp -r "$CRATES" "$last"
"""
MANIFEST = """
[package]
name = "sources"
version = "0.0.0"
[dependencies]
tiny-sys = "=1.2.3"
[patch.crates-io]
cc = { path = "stubs/cc" }
"""
TABLE = """
summary = "a tiny allocator"
soname = "libtiny.so"

[source]
crate = "tiny-sys"
version = "1.2.3"
release = "7.8"
license = "MIT"
folder = "src"
flags = ["-include", "{here}/crates/extra.h"]
files = ["tiny.c"]
object = "libtiny.so"
build_s = 1
"""


@pytest.fixture
def tiny(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of allocators with `tiny`, a crate to be had, a cargo of our own, and a .loam that is ours."""
    for name, value in {
        "XDG_CONFIG_HOME": tmp_path / "config", "XDG_CACHE_HOME": tmp_path / "cache", "DIARY": tmp_path / "diary",
        "LOAM_ALLOCATOR_PATH": tmp_path / "own", "CRATES": tmp_path / "crates", "CARGO_SAYS": "1.65.0", "FAILS": "",
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("LOAM_NO_SETUP", raising=False)
    monkeypatch.setattr(paths, "dot_loam", lambda: tmp_path / ".loam")
    monkeypatch.setattr(debian, "ensure", lambda *needs: None)
    cargo = tmp_path / "bin/cargo"
    cargo.parent.mkdir()
    cargo.write_text(CARGO)
    cargo.chmod(0o755)
    own = tmp_path / "own"
    (own / "crates").mkdir(parents=True)
    (own / "tiny.toml").write_text(TABLE)
    (own / "crates/extra.h").write_text('#define EXPORT __attribute__((visibility("default")))\n')
    (own / "crates/Cargo.toml").write_text(MANIFEST)
    write_lock(own, "a" * 64)
    pack(tmp_path / "crates", "a" * 64)
    return tmp_path


def write_lock(own: Path, checksum: str, version: str = "1.2.3") -> None:
    (own / "crates/Cargo.lock").write_text(
        f'version = 3\n[[package]]\nname = "tiny-sys"\nversion = "{version}"\nchecksum = "{checksum}"\n'
        '[[package]]\nname = "cc"\nversion = "1.99.0"\n'
    )


def pack(crates: Path, checksum: str, source: str = BUMP) -> None:
    home = crates / "tiny-sys-1.2.3"
    (home / "src").mkdir(parents=True, exist_ok=True)
    (home / "src/tiny.c").write_text(source)
    sums = {"package": checksum, "files": {"src/tiny.c": hashlib.sha256(source.encode()).hexdigest()}}
    (home / ".cargo-checksum.json").write_text(json.dumps(sums))


def make(name: str = "tiny") -> dict[str, object]:
    definition = registry.definitions()[name]
    assert definition.recipe is not None
    return compilation.make(name, definition.recipe, definition.source)


def test_what_is_not_built_says_how_and_then_can_be_measured(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(LoamError, match=r"tiny: is not built yet \(run ./loam allocators build tiny\)"):
        registry.load("tiny")
    assert main.run(["list", "allocators", "--json"]) == 0
    entry = next(e for e in json.loads(capsys.readouterr().out)["allocators"] if e["name"] == "tiny")
    assert not entry["available"] and entry["built_from"]["command"] == "./loam allocators build tiny"

    assert main.run(["allocators", "build", "tiny", "--json"]) == 0
    captured = capsys.readouterr()
    (built,) = json.loads(captured.out)["allocators"]
    assert "from crate tiny-sys 1.2.3, MIT" in captured.err, "it is announced"
    loaded = registry.load("tiny")
    assert (loaded.version, loaded.soname, loaded.sha256) == ("7.8", "libtiny.so", built["sha256"])
    assert len(loaded.build_id) == 40 and loaded.path == built["path"]
    assert built["crate_sha256"] == "a" * 64 and "CRATE" in built["commands"][0]
    assert str(tiny).encode() not in Path(built["path"]).read_bytes(), "paths of this machine stay out of the object"

    asked = (tiny / "diary").read_text().splitlines()
    assert "-Z sparse-registry vendor --locked --versioned-dirs" in asked[1], "1.65 would clone the whole index"
    assert main.run(["allocators", "build", "tiny"]) == 0
    assert "up to date" in capsys.readouterr().err
    assert len((tiny / "diary").read_text().splitlines()) == 2, "what is built needs no network"


def test_commands_build_what_they_are_asked_for(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOAM_NO_SETUP", "1")
    building.ensure(["tiny", "glibc:tcache=0"])
    assert not (tiny / "diary").exists(), "--no-setup builds nothing"
    monkeypatch.delenv("LOAM_NO_SETUP")
    building.ensure(["glibc", "no-such", "jemalloc"])
    assert not (tiny / "diary").exists(), "what is no source build needs none"
    building.ensure(["glibc", "tiny"])
    assert registry.load("tiny").path
    built = (tiny / ".loam/allocators/tiny/built.json").stat().st_mtime_ns
    building.ensure(["tiny"])
    assert (tiny / ".loam/allocators/tiny/built.json").stat().st_mtime_ns == built


def test_a_newer_cargo_needs_no_unstable_option(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CARGO_SAYS", "1.85.0")
    make()
    assert "sparse" not in (tiny / "diary").read_text()


def test_a_changed_recipe_header_or_lock_makes_the_object_stale(tiny: Path) -> None:
    make()
    header = tiny / "own/crates/extra.h"
    header.write_text(header.read_text() + "#define ANOTHER 1\n")
    with pytest.raises(LoamError, match=r"was built before tiny\.toml changed .*build tiny"):
        registry.load("tiny")
    make()
    assert registry.load("tiny").path
    file = tiny / "own/tiny.toml"
    file.write_text(TABLE.replace('folder = "src"', 'folder = "src"\nlibraries = ["m"]'))
    with pytest.raises(LoamError, match="was built before"):
        registry.load("tiny")


def test_another_archive_than_the_locked_one_is_never_built(tiny: Path) -> None:
    write_lock(tiny / "own", "b" * 64)
    with pytest.raises(
        LoamError, match=rf"tiny-sys-1\.2\.3={'a' * 64}: SHA-256 of the archive differs; locked is {'b' * 64}"
    ):
        make()
    assert recipe.installed("tiny", *_parts()) is None


def test_a_file_that_was_changed_after_fetching_is_never_built(tiny: Path) -> None:
    make()
    (fetched,) = (tiny / ".loam/allocators/.sources").glob("*/tiny-sys-1.2.3/src/tiny.c")
    fetched.write_text(BUMP + "/* changed */")
    with pytest.raises(LoamError, match=r"tiny\.c=.*SHA-256 differs from the archive's"):
        make()
    assert registry.load("tiny").path, "what was built before stays"


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        (
            "error: failed to sync\\n\\nCaused by:\\n  failed to resolve address for index",
            "cannot be downloaded: failed to res",
        ),
        (
            "error: checksum for `tiny-sys v1.2.3` changed between lock files",
            "differs from the locked one: error: check",
        ),
        ("error: older than the `2024` edition, and only supports `2015`", "needs cargo 1.85 or newer"),
        (
            "error: no matching package\\nAs a reminder, you're using offline mode (--offline)",
            "is set to offline",
        ),
    ],
)
def test_cargo_s_failures_are_told(tiny: Path, monkeypatch: pytest.MonkeyPatch, says: str, expected: str) -> None:
    monkeypatch.setenv("FAILS", says)
    with pytest.raises(LoamError) as caught:
        make()
    assert expected in caught.value.line()
    assert (
        not list((tiny / ".loam/allocators").glob(".fetch-*")) and not (tiny / ".loam/allocators/.sources/x").exists()
    )


def test_no_setup_fetches_nothing(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOAM_NO_SETUP", "1")
    with pytest.raises(LoamError, match="--no-setup forbids the download"):
        make()
    assert not (tiny / "diary").exists()


def test_a_lock_of_another_version_is_an_error(tiny: Path) -> None:
    write_lock(tiny / "own", "a" * 64, version="1.2.4")
    with pytest.raises(LoamError, match=r"locks tiny-sys 1\.2\.4; tiny\.toml asks for 1\.2\.3"):
        make()


def test_compiler_errors_are_shown_and_the_old_object_stays(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = make()
    shutil.rmtree(tiny / ".loam/allocators/.sources")
    pack(tiny / "crates", "a" * 64, BUMP + "\nthis is no C\n")
    with pytest.raises(LoamError, match=r"tiny: gcc ended with 1 \(see .*tiny\.log\)"):
        make()
    assert "error" in capsys.readouterr().err and "no C" in (tiny / ".loam/allocators/tiny.log").read_text()
    assert registry.load("tiny").sha256 == before["sha256"]


def test_what_is_no_allocator_is_not_put_in_place(tiny: Path) -> None:
    pack(tiny / "crates", "a" * 64, "int answer(void) { return 42; }\n")
    with pytest.raises(LoamError, match="defines no malloc"):
        make()
    assert recipe.installed("tiny", *_parts()) is None


def test_an_interrupted_build_leaves_nothing_to_be_found(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed before the last rename: the next start sees nothing, and the next build sweeps the rest away."""
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(compilation, "_put", lambda *_: os._exit(9))
        make()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    home = tiny / ".loam/allocators"
    assert list(home.glob(".make-*/done/libtiny.so")), "it was all but ready"
    with pytest.raises(LoamError, match="is not built yet"):
        registry.load("tiny")
    make()
    assert not list(home.glob(".make-*")) and registry.load("tiny").path


def test_several_are_built_although_one_fails(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = TABLE.replace('files = ["tiny.c"]', 'files = ["absent.c"]')
    (tiny / "own/broken.toml").write_text(broken)
    assert main.run(["allocators", "build", "broken", "tiny", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in document["allocators"]] == ["tiny"]
    assert [entry["name"] for entry in document["errors"]] == ["broken"]
    assert main.run(["allocators", "build", "glibc"]) == 2
    assert "is not built from sources" in capsys.readouterr().err
    assert main.run(["allocators", "build", "tinny"]) == 2
    assert "did you mean tiny?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('crate = "x"\nversion = "1"\nfiles = ["a.c"]\nflag = ["-O3"]', "source.flag is no key"),
        ('crate = "x"\nversion = "1"', "needs version, and files or make"),
        (
            'crate = "x"\ndebian = "y"',
            "source needs one of: crate and version; git, commit and sha256; debian and path",
        ),
        ('debian = "y"', "needs path"),
        ('crate = "x"\nversion = "1"\nfiles = "a.c"', "must be a list of strings"),
    ],
)
def test_damaged_recipes_are_named(tiny: Path, table: str, says: str) -> None:
    (tiny / "own/bad.toml").write_text(f'[source]\nobject = "libbad.so"\nlicense = "MIT"\n{table}\n')
    with pytest.raises(LoamError) as caught:
        registry.load("bad")
    assert says in caught.value.line() and "bad.toml" in caught.value.line()


def test_a_debian_object_is_taken_out_of_its_package(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = tiny / "deb"
    (tree / "usr/lib").mkdir(parents=True)
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(
        "Package: ptiny\nVersion: 1:2.3-4\nArchitecture: all\nMaintainer: x\nDescription: x\n"
    )
    source = tiny / "tiny.c"
    source.write_text(BUMP)
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-Wl,-soname,libp.so", source, "-o", tree / "usr/lib/libp.so"], check=True
    )

    def download(name: str, folder: Path) -> Path:
        target = folder / f"{name}_1%3a2.3-4_all.deb"
        subprocess.run(["dpkg-deb", "--build", tree, target], check=True, stdout=subprocess.DEVNULL)
        return target

    monkeypatch.setattr(debian, "download", download)
    table = '[source]\ndebian = "ptiny"\npath = "usr/lib/libp.so"\nlicense = "MIT"\nobject = "libp.so"\n'
    (tiny / "own/ptiny.toml").write_text(table)
    make("ptiny")
    loaded = registry.load("ptiny")
    assert loaded.version == "2.3-4" and stat.S_ISREG(Path(str(loaded.path)).stat().st_mode)


def test_the_tree_s_locks_are_of_version_3_and_hold_every_crate() -> None:
    folder = paths.root() / "allocators"
    for lock in folder.glob("*/Cargo.lock"):
        content = tomllib.loads(lock.read_text())
        assert content["version"] == 3, "Debian 12's cargo reads no newer one"
        sources = {p["source"] for p in content["package"] if "source" in p}
        assert sources == {"registry+https://github.com/rust-lang/crates.io-index"}
        assert all(len(p["checksum"]) == 64 for p in content["package"] if "source" in p)
    for name, definition in registry.definitions().items():
        if definition.recipe is not None and definition.recipe.crate:
            assert recipe.locked(definition.recipe, definition.source), name
            assert not definition.default, "tour never needs what must be built"


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.parametrize("name", ["rpmalloc", "hoard", "mimalloc-2.5"])
def test_the_real_thing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Needs the registry that this machine's cargo is configured for."""
    from loam_lab.setup import build
    from loam_lab.subjects.allocators import verify

    monkeypatch.setattr(paths, "dot_loam", lambda: tmp_path / ".loam")
    try:
        made = make(name)
    except LoamError as problem:
        if "cannot be downloaded" in problem.limit:
            pytest.skip(f"no registry here: {problem.line()}")
        raise
    probe = Path(build.ensure_built(["probe"])["libraries"]["probe"])
    verified = verify.run(registry.load(name), probe)
    assert verified.status == "proven" and verified.allocator.sha256 == made["sha256"], verified.reasons


def _parts() -> tuple[recipe.Source, Path]:
    definition = registry.definitions()["tiny"]
    assert definition.recipe is not None
    return definition.recipe, definition.source
