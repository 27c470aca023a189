"""The Debian packages: what goes into which, that they install on a clean Debian 12, run, and go without a trace.

The short forms look at the source tree and at what `cmake --install` installs.  The long form builds the packages, takes the
tour with them, and needs root, a network and forty minutes: ./loam test --all
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import clean_root
import pytest
from packaged import check_tour, run

import loam_lab
from loam_lab.base import paths
from loam_lab.setup import build

ROOT = paths.root()
PACKAGES = ("loam", "libloam-malloc0", "libloam-tm0", "libloam-itm1", "libloam-dev")
TRIPLE = "x86_64-linux-gnu"
SYMBOLS = f"LOAM_{loam_lab.__version__.rpartition('.')[0]}"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    run(sys.executable, ROOT / "packaging/build.py", "source", folder, folder=ROOT)
    (unpacked,) = folder.iterdir()
    return unpacked


def patterns(package: str) -> list[str]:
    """What a package installs of a built tree, as patterns below its root."""
    lines = (ROOT / f"packaging/debian/{package}.install").read_text().splitlines()
    return [line.split()[0] for line in lines if line and not line.startswith("debian/")]


def control() -> list[dict[str, str]]:
    """The paragraphs of debian/control: the source first, then each package."""
    text = (ROOT / "packaging/debian/control").read_text()
    paragraphs = []
    for paragraph in text.strip().split("\n\n"):
        fields = re.findall(r"^(\S+?): ?(.*(?:\n .*)*)", paragraph, re.MULTILINE)
        paragraphs.append(dict(fields))
    return paragraphs


def test_the_version_is_the_same_everywhere(tree: Path) -> None:
    version = loam_lab.__version__
    first = (ROOT / "CHANGELOG.md").read_text().split("\n## ")[1]
    assert first.startswith(version), "the changelog begins with the version that is built"
    assert f"loam ({version}) unstable" in (tree / "debian/changelog").read_text()
    numbers = re.findall(r"#define LOAM_VERSION_\w+ (\d+)", (ROOT / "include/loam/tm.h").read_text())
    assert ".".join(numbers) == version
    for file, literal in (("CMakeLists.txt", f"VERSION {version}"), ("pyproject.toml", f'version = "{version}"')):
        assert literal not in (ROOT / file).read_text(), f"{file} takes the version from lab/loam_lab/__init__.py"
    assert f"loam {version}\n" in (ROOT / "docs/compatibility.md").read_text()


def test_the_changelog_is_one_that_debian_reads(tree: Path) -> None:
    text = (tree / "debian/changelog").read_text()
    assert re.search(r"^ -- .+ <\S+>  \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d \+0000$", text, re.MULTILINE)
    assert "  * " in text
    assert max(map(len, text.splitlines())) <= 80
    if shutil.which("dpkg-parsechangelog"):
        version = run("dpkg-parsechangelog", "-l", tree / "debian/changelog", "-S", "Version", folder=tree)
        assert version.strip() == loam_lab.__version__


def test_the_source_is_whole(tree: Path) -> None:
    source, *binaries = control()
    assert source["Source"] == "loam"
    assert tuple(package["Package"] for package in binaries) == PACKAGES
    for package in PACKAGES:
        assert (tree / f"debian/{package}.install").is_file()
    for line in (tree / "debian/loam.install").read_text().splitlines():
        assert (tree / line.split()[0]).exists(), line
    assert os.access(tree / "debian/rules", os.X_OK)
    assert (tree / "debian/source/format").read_text() == "3.0 (native)\n"


def test_maintainer_data_is_complete() -> None:
    source, *binaries = control()
    assert re.fullmatch(r".+ <\S+@\S+>", source["Maintainer"])
    assert source["Maintainer"] in (ROOT / "packaging/build.py").read_text()
    for package in binaries:
        first, *rest = package["Description"].splitlines()
        assert 10 < len(first) < 80 and not first.endswith(".") and rest, package["Package"]
        assert "${misc:Depends}" in package["Depends"]
    libraries = {package["Package"]: package for package in binaries if package["Package"] != "loam"}
    for name in ("libloam-malloc0", "libloam-tm0"):
        assert libraries[name]["Multi-Arch"] == "same" and "${shlibs:Depends}" in libraries[name]["Depends"]
        assert f"{name} (= ${{binary:Version}})" in libraries["libloam-dev"]["Depends"]
    itm = libraries["libloam-itm1"]
    assert itm["Multi-Arch"] == "same" and "Provides" not in itm and "Replaces" not in itm, "GCC's stays as it is"
    assert binaries[0]["Architecture"] == "all"
    assert (
        (ROOT / "packaging/debian/copyright")
        .read_text()
        .startswith("Format: https://www.debian.org/doc/packaging-manuals/")
    )


def test_programs_depend_on_the_version_that_the_symbols_have() -> None:
    """dpkg-shlibdeps takes the least version of a symbol from here: that of the second number, whatever the third is."""
    head, *fields = (ROOT / "packaging/debian/libloam-tm0.symbols").read_text().splitlines()
    assert head == "libloam-tm.so.0 libloam-tm0 #MINVER#"
    assert fields[-1] == f" (symver){SYMBOLS} {SYMBOLS.removeprefix('LOAM_')}.0"


def test_our_libitm_does_not_take_the_place_of_the_one_of_gcc() -> None:
    """It has the same name. It lies where no program looks unless told to, and no package comes to depend on it."""
    (pattern,) = patterns("libloam-itm1")
    assert re.fullmatch(r"usr/lib/\*/loam/itm/libitm\.so\.1", pattern)
    rules = (ROOT / "packaging/debian/rules").read_text()
    assert re.search(r"^\tdh_makeshlibs -X/loam/itm/$", rules, re.MULTILINE)
    assert '"${CMAKE_INSTALL_LIBDIR}/loam/itm"' in (ROOT / "cmake/LoamInstall.cmake").read_text()


def test_the_command_of_the_package_unpacks_once_and_starts(tree: Path, tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    (tmp_path / "loam").write_text('#!/bin/sh\necho "started by $LOAM_PROGRAM with $*"\n')
    (tmp_path / "loam").chmod(0o755)
    (tmp_path / ".loam-sent").write_text("{}")
    with tarfile.open(share / "sources.tar", "w") as made:
        for name in ("loam", ".loam-sent"):
            made.add(tmp_path / name, name)
    (share / "sources.sha256").write_text("abc\n")
    own = {"LOAM_SHARE": str(share), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    for _ in range(2):
        assert run(tree / "debian/bin/loam", "tour", "-x", folder=tmp_path, **own) == "started by loam with tour -x\n"
    assert [entry.name for entry in (tmp_path / "cache/loam/sources").iterdir()] == ["abc"]
    (share / "sources.tar").write_text("torn")
    (share / "sources.sha256").write_text("def\n")
    done = subprocess.run(
        [tree / "debian/bin/loam"], env={**os.environ, **own}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "cannot be written" in done.stderr
    assert [entry.name for entry in (tmp_path / "cache/loam/sources").iterdir()] == ["abc"]


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `cmake --install` puts below /usr, from the release build, with Debian's folder for libraries."""
    build.ensure_targets("release", ["loam-package"])
    folder = tmp_path_factory.mktemp("staged")
    run("cmake", "--install", ROOT / "build/release", "--component", "loam", "--prefix", folder / "usr", folder=ROOT)
    return folder


@pytest.mark.slow
def test_every_installed_file_is_in_exactly_one_package(staged: Path) -> None:
    """The patterns of debian/*.install against what is installed; /usr/lib stands for its folder of the processor."""
    installed = [file.relative_to(staged).as_posix() for file in staged.rglob("*") if not file.is_dir()]
    assert any(name.endswith("loam/tm.h") for name in installed)
    owners: dict[str, list[str]] = {name: [] for name in installed}
    for package in PACKAGES:
        for pattern in patterns(package):
            plain = re.sub(r"^usr/lib/\*/", "usr/lib*/", pattern)
            matching = [
                name for name in installed
                if fnmatch.fnmatch(re.sub(rf"^usr/lib(64)?/({TRIPLE}/)?", "usr/lib/", name), plain.replace("lib*/", "lib/"))
                or re.sub(rf"^usr/lib(64)?/({TRIPLE}/)?", "usr/lib/", name).startswith(plain.replace("lib*/", "lib/") + "/")
            ]  # fmt: skip
            assert matching, f"{package}: nothing is installed that {pattern} names"
            for name in matching:
                owners[name].append(package)
    wrong = {name: packages for name, packages in owners.items() if len(packages) != 1}
    assert wrong == {}


@pytest.mark.slow
def test_libraries_have_the_soname_of_their_package_and_versioned_symbols(staged: Path) -> None:
    (library,) = (file for file in staged.rglob("libloam-tm.so.*") if not file.is_symlink())
    assert library.name == f"libloam-tm.so.{loam_lab.__version__}"
    dynamic = run("readelf", "--dynamic", "--wide", library, folder=staged)
    major = loam_lab.__version__.partition(".")[0]
    assert f"soname: [libloam-tm.so.{major}]" in dynamic and f"libloam-tm{major}" in PACKAGES
    symbols = run("nm", "--dynamic", "--defined-only", "--with-symbol-versions", library, folder=staged).splitlines()
    defined = [line.split()[-1] for line in symbols if " A " not in line]
    assert defined and all(name.endswith(f"@@{SYMBOLS}") for name in defined)
    (malloc,) = staged.rglob("libloam-malloc.so")
    assert "@@" not in run("nm", "--dynamic", "--defined-only", "--with-symbol-versions", malloc, folder=staged)


# ---- the long form


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the built packages alone."""
    if why := clean_root.lacking():
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("debian")
    run(sys.executable, ROOT / "packaging/build.py", "debian", folder / "made", folder=ROOT, seconds=1700)
    (folder / "packages").mkdir()
    for package in (folder / "made").glob("*.deb"):
        if "-dbgsym" not in package.name:
            shutil.move(package, folder / "packages")
    return folder / "packages"


@pytest.fixture(scope="module")
def debian_12(tmp_path_factory: pytest.TempPathFactory) -> Iterator[clean_root.CleanRoot]:
    if why := clean_root.lacking():
        pytest.skip(why)
    with clean_root.made(tmp_path_factory.mktemp("root")) as root:
        yield root


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_the_packages_are_built_and_hold_what_they_should(built: Path, tmp_path: Path) -> None:
    version = loam_lab.__version__
    packages = {package.name.split("_")[0]: package for package in built.iterdir()}
    assert set(packages) == set(PACKAGES)
    for name, package in packages.items():
        assert run("dpkg-deb", "--field", package, "Version", folder=tmp_path).strip() == version
        run("dpkg-deb", "-x", package, tmp_path / name, folder=tmp_path)
    assert (tmp_path / "loam/usr/bin/loam").is_file()
    assert (tmp_path / "loam/usr/share/man/man1/loam.1.gz").is_file()
    assert (tmp_path / "loam/usr/share/bash-completion/completions").is_dir()
    assert "libloam-tm.so.0 libloam-tm0" in shared_libraries(packages["libloam-tm0"], tmp_path / "tm-control")
    run("dpkg-deb", "-e", packages["libloam-itm1"], tmp_path / "itm-control", folder=tmp_path)
    assert not (tmp_path / "itm-control/shlibs").exists()


@pytest.mark.exhaustive
@pytest.mark.timeout(1800)
def test_lintian_finds_no_error(built: Path) -> None:
    if shutil.which("lintian") is None:
        pytest.skip("lintian is not installed")
    run("lintian", "--allow-root", "--fail-on", "error", *sorted(built.iterdir()), folder=built)


def shared_libraries(package: Path, folder: Path) -> str:
    """What a package says of its libraries, as "NAME.so.N PACKAGE": programs that link them depend on it."""
    run("dpkg-deb", "-e", package, folder, folder=folder.parent)
    name, soversion, *depends = (folder / "shlibs").read_text().split()
    return f"{name}.so.{soversion} {' '.join(depends)}"


@pytest.mark.exhaustive
@pytest.mark.timeout(5400)
def test_they_install_on_a_clean_debian_12_run_and_go_without_a_trace(
    built: Path, debian_12: clean_root.CleanRoot
) -> None:
    debian_12.install_dependencies(built)
    before = debian_12.files()
    debian_12.run("dpkg", "-i", *debian_12.take(built))
    brought = debian_12.files() - before
    share = "usr/share"
    assert brought >= {
        "usr/bin/loam", f"{share}/man/man1/loam-study-run.1.gz", f"{share}/bash-completion/completions/loam",
        f"{share}/zsh/vendor-completions/_loam", f"{share}/fish/vendor_completions.d/loam.fish",
    }  # fmt: skip
    assert f"loam {loam_lab.__version__}" in debian_12.run("loam", "--version", seconds=900)
    assert "Usage" in debian_12.run("loam", "--help")
    output = debian_12.run("loam", "doctor", okay=(0, 1))
    assert output.strip()
    asked = f". /{share}/bash-completion/completions/loam; COMP_WORDS=(loam st); COMP_CWORD=1; _loam_completion loam"
    assert debian_12.run("bash", "-c", f'{asked}; echo "${{COMPREPLY[@]}}"').split() == ["study"]
    # A program in C against libloam-dev, with what pkg-config says.
    (debian_12.folder / "root/x.c").write_text(
        "#include <loam/tm.h>\n#include <stdio.h>\nint main(void) { puts(loam_version()); return 0; }\n"
    )
    debian_12.run("sh", "-c", "cc x.c $(pkg-config --cflags --libs loam-tm) -o x")
    assert debian_12.run("./x").strip() == loam_lab.__version__
    # A program of -fgnu-tm, on GCC's library and on ours.
    transaction = "int x; int main(void) { __transaction_atomic { ++x; } return x - 1; }"
    (debian_12.folder / "root/t.c").write_text(transaction + "\n")
    debian_12.run("cc", "-fgnu-tm", "t.c", "-o", "t")
    ours = f"/usr/lib/{TRIPLE}/loam/itm"
    assert f"{ours}/libitm.so.1" not in debian_12.run("ldd", "./t")
    assert f"{ours}/libitm.so.1" in debian_12.run("env", f"LD_LIBRARY_PATH={ours}", "ldd", "./t")
    debian_12.run("env", f"LD_LIBRARY_PATH={ours}", "./t")
    maps = debian_12.run("sh", "-c", f"LD_PRELOAD=/usr/lib/{TRIPLE}/libloam-malloc.so cat /proc/self/maps")
    assert "libloam-malloc.so" in maps
    # The first command of every newcomer: it builds what it measures, and installs the allocators of Debian that it compares.
    debian_12.run("loam", "tour", "--out", "first", seconds=2700)
    check_tour(debian_12.folder / "root/first")
    debian_12.run("loam", "trace", "record", "--out", "listing.trace", "--", "ls", "/usr")
    assert (debian_12.folder / "root/listing.trace").stat().st_size > 0
    debian_12.run("dpkg", "--purge", *PACKAGES)
    # What `loam` installed for itself with apt, such as allocators, is not the packages'.
    assert debian_12.files() & brought == set(), "what the packages brought is gone"
