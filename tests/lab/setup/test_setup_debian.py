"""Missing Debian packages: listed, installed as root, unpacked without, with an apt-get of our own that keeps a diary."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.setup import build, commands, debian, system
from loam_lab.setup.debian import Package
from loam_lab.subjects.allocators import registry

LIBRARY = Package("libnine", "library:libnine.so.9", ("measure",), "allocator nine", unpacks=True)
TOOL = Package("ninetool", "command:ninetool", ("measure",), "compiles")
BROWSER = Package("ninebrowser", "command:ninebrowser", ("measure",), "opens pages", optional=True)

# What the diary's apt-get does: "install" puts the commands named in $BRINGS into the search path, "download" copies
# the prepared package, "update" fails where $OFFLINE is set.
APT = """#!/bin/sh
echo "$@" >>"$DIARY"
case " $* " in
  *" update "*) [ -z "$OFFLINE" ] || exit 100 ;;
  *" --simulate "*) echo "Inst libnine (9-1 nowhere [amd64])" ;;
  *" download "*) cp "$DEBS"/*.deb . ;;
  *" install "*) for name in $BRINGS; do printf '#!/bin/sh\\n' >"$BIN/$name"; chmod +x "$BIN/$name"; done ;;
esac
"""


@pytest.fixture
def diary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout whose unpacked packages are its own, and an apt-get that writes what it is asked into this file."""
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, value in {
        "DIARY": tmp_path / "diary", "DEBS": tmp_path / "debs", "BIN": tools, "BRINGS": "", "OFFLINE": "",
        "PATH": f"{tools}:{os.environ['PATH']}",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("LOAM_NO_SETUP", raising=False)
    (tools / "apt-get").write_text(APT)
    (tools / "apt-get").chmod(0o755)
    monkeypatch.setattr(paths, "dot_loam", lambda: tmp_path / ".loam")
    return tmp_path / "diary"


def lacking(monkeypatch: pytest.MonkeyPatch, *packages: Package, root: bool) -> None:
    monkeypatch.setattr(debian, "PACKAGES", packages)
    monkeypatch.setattr(paths, "allocator_folders", lambda: (paths.dot_loam() / "allocators",))
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)


def test_the_perl_of_an_empty_debian_is_not_the_one_with_threads() -> None:
    """perl-base, which every Debian has, brings the command alone."""
    (package,) = [package for package in debian.PACKAGES if package.name == "perl"]
    starts = shutil.which("perl") and subprocess.run(["perl", "-Mthreads", "-e", "1"], check=False).returncode == 0
    assert debian.present(package) == bool(starts)


def test_what_is_there_is_not_asked_for(diary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = Package("sh", "command:sh", ("measure",), "runs")
    file = Package("passwd", "file:etc/passwd", ("measure",), "names")
    module = Package("python", "module:json", ("measure",), "reads")
    other = Package("other", "command:no-such-tool", ("test",), "only for tests")
    lacking(monkeypatch, there, file, module, other, root=True)
    debian.ensure("measure")
    assert not diary.exists()
    assert debian.missing("test") == [other]


def test_no_setup_stops_with_the_list(diary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, LIBRARY, TOOL, BROWSER, root=True)
    monkeypatch.setenv("LOAM_NO_SETUP", "1")
    with pytest.raises(LoamError, match=r"missing: libnine ninetool \(run ./loam setup, or as root: apt-get install"):
        debian.ensure("measure")
    assert not diary.exists()


def test_root_installs_after_the_list_was_printed(
    diary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lacking(monkeypatch, TOOL, BROWSER, root=True)
    monkeypatch.setenv("BRINGS", "ninetool ninebrowser")
    debian.ensure("measure")
    assert diary.read_text().splitlines() == [
        "update -q",
        "install -q -y --no-install-recommends ninetool",
        "install -q -y --no-install-recommends ninebrowser",
    ]
    captured = capfd.readouterr()
    assert captured.out == "" and "ninetool     compiles" in captured.err


def test_what_is_optional_may_be_absent(
    diary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lacking(monkeypatch, TOOL, BROWSER, root=True)
    monkeypatch.setenv("BRINGS", "ninetool")
    debian.ensure("measure")
    assert "warning: ninebrowser could not be installed" in capfd.readouterr().err


def test_an_optional_package_that_fails_spoils_no_other(
    diary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pages = Package("ninepages", "command:ninepages", ("measure",), "reads pages", optional=True)
    lacking(monkeypatch, BROWSER, pages, root=True)
    monkeypatch.setenv("BRINGS", "ninepages")
    debian.ensure("measure")
    assert [line.rpartition(" ")[2] for line in diary.read_text().splitlines()[1:]] == ["ninebrowser", "ninepages"]
    warnings = [line for line in capfd.readouterr().err.splitlines() if line.startswith("warning")]
    assert len(warnings) == 1 and "ninebrowser could not be installed" in warnings[0]


def test_setup_brings_programs_where_asked(
    diary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = Package("nineprogram", "command:nineprogram", ("programs",), "runs", optional=True)
    lacking(monkeypatch, program, root=True)
    monkeypatch.setenv("BRINGS", "nineprogram")
    monkeypatch.setattr(build, "is_built", lambda: True)
    monkeypatch.setattr(build, "ensure_built", lambda: {"executables": {}, "libraries": {}})
    installed = []
    for asked in (False, True):
        assert commands.setup(tests=False, programs=asked, as_json=True) == 0
        installed.append(json.loads(capsys.readouterr().out)["installed"])
    assert installed == [[], ["nineprogram"]]


def allocator_file(name: str, text: str) -> None:
    folder = paths.dot_loam() / "allocators"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(text)


def test_setup_brings_the_package_of_a_new_allocator_file(
    diary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lacking(monkeypatch, root=True)
    allocator_file("nine", f'package = "libnine9"\ncandidates = ["libnine.so.8", "{diary.parent}/bin/nine.so"]\n')
    monkeypatch.setenv("BRINGS", "nine.so")
    debian.ensure("measure", "test")
    assert not diary.exists()  # it is measured only when it is named
    monkeypatch.setattr(build, "is_built", lambda: True)
    monkeypatch.setattr(build, "ensure_built", lambda: {"executables": {}, "libraries": {}})
    assert commands.setup(tests=False, programs=False, as_json=True) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    assert (document["installed"], document["missing"]) == (["libnine9"], [])
    assert "libnine9  allocator nine" in captured.err
    assert diary.read_text().splitlines()[-1] == "install -q -y --no-install-recommends libnine9"


def test_an_allocator_that_is_measured_by_itself_is_brought_and_its_absence_stops_nothing(
    diary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A distribution may have another version of it, under another name."""
    lacking(monkeypatch, TOOL, root=True)
    monkeypatch.setenv("BRINGS", "ninetool")
    allocator_file("nine", 'package = "libnine9"\ncandidates = ["libnine.so.9"]\ndefault = true\n')
    debian.ensure("measure")
    assert diary.read_text().splitlines()[1:] == [
        "install -q -y --no-install-recommends ninetool",
        "install -q -y --no-install-recommends libnine9",
    ]
    (warning,) = (line for line in capfd.readouterr().err.splitlines() if line.startswith("warning"))
    assert "libnine9 could not be installed; what needs it is left out (allocator nine)" in warning
    monkeypatch.setenv("LOAM_NO_SETUP", "1")
    debian.ensure("measure", again=True)


def test_an_allocator_comes_with_the_package_of_this_release(diary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, root=True)
    text = 'package = "libnine8"\ncandidates = ["libnine.so.8"]\ndefault = true\n'
    allocator_file("nine", text + '[on."debian 13"]\npackage = "libnine9"\ncandidates = ["libnine.so.9"]\n')
    for release, package in (("12", "libnine8"), ("13", "libnine9"), ("nine", "libnine9")):
        here = system.of({"ID": "debian", "VERSION_ID": release}, "apt-get")
        monkeypatch.setattr(system, "here", lambda: here)  # noqa: B023
        debian.ensure("measure", again=True)
        assert diary.read_text().splitlines()[-1].split()[-1] == package
    assert system.of({"ID": "fedora", "VERSION_ID": "41"}, "dnf").own({"on": {"debian 13": {"package": "x"}}}) == {}


def test_what_cannot_be_had_is_asked_for_again_by_setup_or_after_a_day(
    diary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking(monkeypatch, root=True)
    allocator_file("nine", 'package = "libnine9"\ncandidates = ["libnine.so.9"]\ndefault = true\n')
    asked = []
    for again, hours in ((False, 0), (False, 1), (True, 1), (False, 26)):
        monkeypatch.setattr(time, "time", lambda: 1e9 + hours * 3600)  # noqa: B023
        debian.ensure("measure", again=again)
        asked.append(len(diary.read_text().splitlines()))
    assert asked == [2, 2, 4, 6]
    (paths.dot_loam() / "sought.json").write_text("damaged")
    debian.ensure("measure")
    assert len(diary.read_text().splitlines()) == 8


def test_a_tool_is_asked_for_at_each_start(diary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, TOOL, root=True)
    for _ in range(2):
        with pytest.raises(LoamError, match="ninetool could not be installed"):
            debian.ensure("measure")
    assert len(diary.read_text().splitlines()) == 4


def on(monkeypatch: pytest.MonkeyPatch, installer: str) -> None:
    """This machine is one with another installer of packages."""
    monkeypatch.setattr(system, "here", lambda: system.of({"PRETTY_NAME": "Nine"}, installer))


def test_with_dnf_packages_have_their_names_there(
    diary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    compiler = Package("g++", "command:nine-g++", ("measure",), "compiles")
    lacking(
        monkeypatch,
        compiler,
        Package("libjemalloc2", "library:libnine.so.2", ("measure",), "nine", optional=True),
        root=True,
    )
    on(monkeypatch, "dnf")
    (diary.parent / "bin/apt-get").rename(diary.parent / "bin/dnf")
    monkeypatch.setenv("BRINGS", "nine-g++")
    debian.ensure("measure")
    assert diary.read_text().splitlines() == ["install -q -y gcc-c++", "install -q -y jemalloc"]
    assert "gcc-c++   compiles" in capfd.readouterr().err


def test_with_dnf_and_without_root_it_says_what_to_type(diary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, Package("g++", "command:nine-g++", ("measure",), "compiles"), root=False)
    on(monkeypatch, "dnf")
    with pytest.raises(LoamError, match=r"^missing: gcc-c\+\+ \(as root: dnf install gcc-c\+\+\)"):
        debian.ensure("measure")
    assert not diary.exists()


@pytest.mark.parametrize(
    ("release", "package", "name"),
    [
        ({"ID": "debian", "VERSION_ID": "12"}, "gcc-{gcc}-plugin-dev", "gcc-12-plugin-dev"),
        ({"ID": "debian", "VERSION_ID": "13"}, "gcc-{gcc}-plugin-dev", "gcc-14-plugin-dev"),
        ({"ID": "ubuntu", "VERSION_ID": "24.04"}, "postgresql-{postgresql}", "postgresql-16"),
        ({"ID": "nine"}, "libpython{python}-testsuite", "libpython3.13-testsuite"),
    ],
)
def test_names_have_the_numbers_of_the_distribution(release: dict[str, str], package: str, name: str) -> None:
    versions = system.of(release, "apt-get").versions
    assert package.format(**vars(versions)) == name


@pytest.mark.parametrize(
    ("name", "there"),
    [
        ("gcc", "gcc"),
        ("gcc-14-plugin-dev", "gcc-plugin-devel"),
        ("libpython3.13-testsuite", "python3-test"),
        ("tar", "tar"),
    ],
)
def test_fedora_has_names_of_its_own(name: str, there: str) -> None:
    assert system.of({}, "dnf").called(name) == there
    assert system.of({}, "apt-get").called(name) == name


@pytest.mark.parametrize("root", [True, False])
def test_an_allocator_that_cannot_be_brought_stops_nothing(
    root: bool, diary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lacking(monkeypatch, root=root)
    (diary.parent / "debs").mkdir()
    allocator_file("eight", 'package = "libeight8"\ncandidates = ["libeight.so.8"]\n')
    allocator_file("nine", 'package = "libnine9"\ncandidates = ["libnine.so.9"]\n')
    debian.ensure("measure", "allocators")
    warnings = [line for line in capfd.readouterr().err.splitlines() if line.startswith("warning")]
    assert [line.split()[1] for line in warnings] == ["libeight8", "libnine9"]
    assert all("what needs it is left out" in line for line in warnings)


@pytest.mark.parametrize(
    "text",
    [
        'package = "libnine9', "package = 9\ncandidates = []", 'package = "libnine9"', 'package = "libnine9"\ncandidates = 9',
        'package = "libnine9"\ncandidates = ["libnine.so.9"]\non = 9',
        'package = "libnine9"\ncandidates = ["libnine.so.9"]\non.nine = 9',
        'package = "--reinstall"\ncandidates = ["libnine.so.9"]', 'package = ""\ncandidates = ["libnine.so.9"]',
    ],
)  # fmt: skip
def test_a_damaged_allocator_file_names_no_package(text: str, diary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, root=True)
    allocator_file("nine", text)
    assert debian.allocators() == []


def test_each_package_that_an_allocator_names_is_known() -> None:
    named = {known.package for known in registry.definitions().values() if known.package and not known.libc}
    assert "libjemalloc2" in named
    assert {package.name for package in debian.allocators()} == named


def test_without_a_network_it_says_what_to_do(diary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, TOOL, root=True)
    monkeypatch.setenv("OFFLINE", "1")
    with pytest.raises(
        LoamError, match=r"apt-get update: failed, see above \(is there a network\? by hand: apt-get install"
    ):
        debian.ensure("measure")


def test_a_package_that_brings_nothing_is_an_error(diary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, TOOL, root=True)
    with pytest.raises(LoamError, match="ninetool could not be installed"):
        debian.ensure("measure")


def test_another_system_gets_the_names(
    diary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(diary.parent / "nothing"))
    lacking(monkeypatch, LIBRARY, TOOL, root=True)
    with pytest.raises(LoamError, match=r"missing: ninetool \(this is neither Debian nor Fedora"):
        debian.ensure("measure")
    lacking(monkeypatch, LIBRARY, root=True)
    debian.ensure("measure")
    assert "warning: missing: libnine; whatever needs them is left out" in capsys.readouterr().err


def test_a_compiler_cannot_be_unpacked_without_root(diary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, LIBRARY, TOOL, root=False)
    with pytest.raises(LoamError, match=r"ninetool \(works only when installed by root\) \(as root: apt-get install"):
        debian.ensure("measure")
    assert not diary.exists()


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs Debian's dpkg")
def test_without_root_a_library_is_unpacked_and_found(diary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lacking(monkeypatch, LIBRARY, root=False)
    tree = diary.parent / "libnine"
    library = tree / "usr/lib" / f"{os.uname().machine}-linux-gnu" / "libnine.so.9"
    library.parent.mkdir(parents=True)
    library.write_text("nine")
    (tree / "DEBIAN").mkdir()
    (tree / "DEBIAN/control").write_text(
        "Package: libnine\nVersion: 9-1\nArchitecture: all\nMaintainer: t <t@t>\nDescription: t\n"
    )
    (diary.parent / "debs").mkdir()
    subprocess.run(["dpkg-deb", "--build", tree, diary.parent / "debs"], check=True, stdout=subprocess.DEVNULL)
    debian.ensure("measure")
    asked = [line.rpartition("APT::Sandbox::User= ")[2] for line in diary.read_text().splitlines()]
    assert asked == ["update -q", "--simulate --no-install-recommends install libnine", "download -q libnine"]
    path = paths.find_library("libnine.so.9")
    assert path is not None and path.is_relative_to(diary.parent / ".loam/root") and path.read_text() == "nine"


def test_run_before_there_is_an_environment_it_prints_its_error(
    diary: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    lacking(monkeypatch, TOOL, root=False)
    assert debian.main(["measure"]) == 2
    assert capfd.readouterr().err.startswith("error: missing: ninetool")


def test_one_package_is_downloaded_with_an_index_of_our_own(
    diary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "debs").mkdir()
    (tmp_path / "debs/libnine_9-1_amd64.deb").write_bytes(b"made up")
    target = tmp_path / "target"
    target.mkdir()
    assert debian.download("libnine", target) == target / "libnine_9-1_amd64.deb"
    assert "downloading the Debian package libnine" in capfd.readouterr().err
    update, download = diary.read_text().splitlines()
    assert f"Dir::State::lists={target}/apt/lists" in update and download.endswith("download -q libnine")
    monkeypatch.setenv("OFFLINE", "yes")
    with pytest.raises(LoamError, match=r"apt-get update: failed, .*by hand: apt-get download libnine"):
        debian.download("libnine", target)
    monkeypatch.setattr(shutil, "which", lambda *_, **__: None)
    with pytest.raises(LoamError, match="this is not Debian"):
        debian.download("libnine", target)


def test_two_that_install_at_once_come_one_after_the_other(diary: Path) -> None:
    """As two processes of ./loam test do; apt-get itself fails where another one holds its lock."""
    slow = '#!/bin/sh\necho begin >>"$DIARY"; sleep 0.3; echo end >>"$DIARY"\n'
    (diary.parent / "bin/apt-get").write_text(slow)
    with ThreadPoolExecutor(2) as pool:  # a lock of a file that each opens for itself
        assert list(pool.map(debian._apt, [["install", "libnine"], ["install", "ninetool"]])) == [0, 0]
    assert diary.read_text().split() == ["begin", "end", "begin", "end"]
