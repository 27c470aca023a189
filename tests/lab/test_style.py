"""Style as tests: each failure names file, line, rule and what would be allowed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOT_OURS = {".git", ".venv", ".loam", "build", "results", "__pycache__"}
CPP = {".hpp", ".cpp", ".h", ".c"}

# Each layer, and the layers that its files may include.
LAYERS = {
    layer: allowed.split()
    for layer, allowed in (
        line.split(":")
        for line in (ROOT / "runtime" / "layers.txt").read_text().splitlines()
        if line[:1] not in ("", "#")
    )
}

LINES_MAX, LINES_ASK = 500, 400


def files(*folders: str) -> Iterator[Path]:
    """Files of the tree (of these folders), without what is built, installed, measured or hidden."""
    for top in [ROOT / folder for folder in folders] or [ROOT]:
        if not top.is_dir():
            continue
        for path in sorted(top.iterdir()):
            if path.name in NOT_OURS or (path.name.startswith(".") and path.name != ".ci"):
                continue
            if path.is_dir():
                yield from files(str(path.relative_to(ROOT)))
            elif not path.is_symlink():
                yield path


def text_files(*folders: str) -> Iterator[tuple[str, str]]:
    """(name relative to the root, content) of every text file."""
    for path in files(*folders):
        try:
            yield str(path.relative_to(ROOT)), path.read_text()
        except UnicodeDecodeError:
            continue


def complaints(
    check: Callable[[str, str], Iterator[tuple[int, str]]], *folders: str, suffixes: set[str] | None = None
) -> list[str]:
    """ "file:line: rule" for everything a check finds in the tree."""
    return [
        f"{name}:{line}: {what}"
        for name, text in text_files(*folders)
        if suffixes is None or Path(name).suffix in suffixes
        for line, what in check(name, text)
    ]


def show(lines: list[str]) -> str:
    return "\n" + "\n".join(lines)


def layer_of(name: str) -> str | None:
    """The layer of a file; of one below runtime/ that belongs to no layer, its folder."""
    parts = name.split("/")
    folder = "/".join(parts[:2]) if parts[0] == "runtime" else parts[0]
    return folder if folder in LAYERS or parts[0] == "runtime" else None


def wrong_includes(name: str, text: str) -> Iterator[tuple[int, str]]:
    own = layer_of(name)
    for number, line in enumerate(text.splitlines(), 1):
        match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not match or own is None:
            continue
        other = layer_of(match[1])
        if other is None or other == own:
            continue
        allowed = LAYERS.get(own, [])
        if other not in allowed:
            yield (
                number,
                f"{own} includes {match[1]}; by runtime/layers.txt it may include {', '.join(allowed) or 'no other layer'}",
            )


def test_layers_point_one_way_and_are_there() -> None:
    above: list[str] = []
    for layer, allowed in LAYERS.items():
        assert (ROOT / layer).is_dir(), f"runtime/layers.txt: {layer} is no folder"
        assert set(allowed) <= set(above), f"runtime/layers.txt: {layer} may include only what stands above it"
        above.append(layer)
    folders = {f"runtime/{path.name}" for path in (ROOT / "runtime").iterdir() if path.is_dir()}
    assert folders <= set(LAYERS), f"runtime/layers.txt has no line for {', '.join(sorted(folders - set(LAYERS)))}"


def test_includes_follow_the_layers() -> None:
    wrong = complaints(wrong_includes, "runtime", "simulator", "structures", "workloads", suffixes=CPP)
    assert not wrong, show(wrong)


@pytest.mark.parametrize(
    ("name", "line", "wrong"),
    [
        ("runtime/base/x.hpp", '#include "runtime/platform/machine.hpp"', True),
        ("runtime/tm/x.hpp", '#include "runtime/base/check.hpp"', False),
        ("runtime/tm/x.hpp", '#include "runtime/delegation/x.hpp"', True),
        ("runtime/tm/x.hpp", '#include "runtime/malloc/x.hpp"', True),
        ("runtime/malloc/x.cpp", '#include "runtime/heap/heap.hpp"', False),
        ("runtime/malloc/x.cpp", '#include "runtime/tm/tm.hpp"', True),
        ("runtime/heap/x.hpp", '#include "runtime/malloc/process.hpp"', True),
        ("workloads/x.cpp", '#include "structures/list.hpp"', False),
        ("structures/x.hpp", '#include "workloads/x.hpp"', True),
    ],
)
def test_the_layer_check_tells_them_apart(name: str, line: str, wrong: bool) -> None:
    assert bool(list(wrong_includes(name, line))) == wrong


# What the compiler's instrumentation cannot see, or sees wrongly. One place may have it: the machine seam.
SEAM = "runtime/platform/machine"
INVISIBLE = re.compile(
    r"\b(__asm__|asm)\b|\bsyscall\s*\(|\bSYS_\w+|\b_mm_\w+\s*\(|\b_x(begin|end|abort|test)\b|\b__rdtscp?\b"
    r"|__builtin_ia32_\w+|\batomic_(thread|signal)_fence\b|\b__sync_synchronize\b"
)


def invisible(name: str, text: str) -> Iterator[tuple[int, str]]:
    if name.startswith(SEAM):
        return
    for number, line in enumerate(text.splitlines(), 1):
        match = INVISIBLE.search(re.sub(r'//.*|"(\\.|[^"\\])*"', "", line))
        if match:
            yield number, f"{match[0].strip()} belongs into {SEAM}*; elsewhere use what machine.hpp offers"


def test_only_the_machine_seam_has_assembly_system_calls_and_fences() -> None:
    wrong = complaints(invisible, "runtime", "structures", "workloads", suffixes=CPP)
    wrong += [
        f"{name}:1: an assembly file belongs into {SEAM}*"
        for name, _ in text_files("runtime", "structures", "workloads")
        if name.endswith((".S", ".s")) and not name.startswith(SEAM)
    ]
    assert not wrong, show(wrong)


def test_the_seam_check_finds_what_it_is_for() -> None:
    assert list(invisible("runtime/tm/x.hpp", 'asm volatile("pause");'))
    assert list(invisible("runtime/sync/x.hpp", "std::atomic_thread_fence(std::memory_order_seq_cst);"))
    assert not list(invisible("runtime/tm/x.hpp", "// asm volatile would be wrong here"))
    assert not list(invisible("runtime/platform/machine.cpp", "::syscall(SYS_futex);"))


# A static variable in a function or class. A function's declaration has a parameter list after its name, and is left out.
STATIC = re.compile(r"\s+(\[\[.*?\]\]\s*)?(inline\s+)?static\b(?!_)(?P<rest>[^(={;]*)(?P<next>[(={;])")
UNGUARDED = re.compile(r"\b(constinit|constexpr|thread_local)\b")


def guarded_statics(name: str, text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        match = STATIC.match(line)
        if match and match["next"] != "(" and not UNGUARDED.search(match["rest"]):
            yield (
                number,
                "a static that is made at its first use has a lock, for which the child of a fork may wait for ever; make "
                "it constinit or thread_local, or take base::Found",
            )


def test_nothing_of_the_runtime_is_made_at_first_use_behind_a_lock() -> None:
    wrong = complaints(guarded_statics, "runtime", "include", suffixes=CPP)
    assert not wrong, show(wrong)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ("  static const bool works = try_it();", True),
        ("  [[maybe_unused]] static const int registered = ::pthread_atfork(nullptr, nullptr, in_child);", True),
        ("  static Topology read;", True),
        ("  static std::atomic<int> known{0};", True),
        ("  static constinit std::atomic<int> known{0};", False),
        ("  static inline constinit Heap* first = nullptr;", False),
        ("  static constexpr unsigned kMost = 8;", False),
        ("  static thread_local AtExit at_exit;", False),
        ("  inline static thread_local constinit unsigned count_ = 0;", False),
        ("  static bool on() noexcept { return hardened(); }", False),
        ("  static_assert(sizeof(Word) == 8);", False),
    ],
)
def test_the_check_of_statics_tells_them_apart(line: str, wrong: bool) -> None:
    assert bool(list(guarded_statics("runtime/tm/x.cpp", line))) == wrong


def test_one_subject_per_file() -> None:
    long = []
    for name, text in text_files():
        if Path(name).suffix not in CPP | {".py", ".S"} and name != "loam":
            continue
        lines = text.count("\n")
        if lines > LINES_MAX:
            long.append(f"{name}:{lines}: more than {LINES_MAX} lines; which two subjects does it hold?")
        elif lines > LINES_ASK:
            warnings.warn(f"{name} has {lines} lines; which two subjects does it hold?", stacklevel=1)
    assert not long, show(long)


# Spelled in parts, so that this file does not find itself.
PRIVATE = re.compile(r"(?<![\w.])/(" + "|".join(["wor" + "k", "roo" + "t", "hom" + "e"]) + r")/\w+")
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X"]) + r")\b")


def private_paths(name: str, text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if match := PRIVATE.search(line):
            yield number, f"{match[0]} is a path of one machine; find it at run time"


def unfinished(name: str, text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        if match := UNFINISHED.search(line):
            yield number, f"{match[0]}: finish it, or write a sentence that begins with Open:"


def test_no_path_of_one_machine() -> None:
    wrong = complaints(private_paths)
    assert not wrong, show(wrong)


def test_nothing_is_left_unfinished() -> None:
    wrong = complaints(unfinished)
    assert not wrong, show(wrong)


def dead_links(name: str, text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", line):
            file = target.split("#")[0]
            if (
                file
                and "://" not in file
                and not file.startswith("mailto:")
                and not (ROOT / name).parent.joinpath(file).exists()
            ):
                yield number, f"the link leads to {target}, which is not there"


def test_links_between_documents_lead_somewhere() -> None:
    wrong = complaints(dead_links, suffixes={".md"})
    assert not wrong, show(wrong)


def run_tool(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command[:4])} ...\n{done.stdout}{done.stderr}"


def tool(name: str) -> str:
    """A tool of this environment."""
    path = shutil.which(name, path=str(Path(sys.executable).parent))
    assert path, f"{name} is not in this environment; start the tests with ./loam test"
    return path


def test_clang_format() -> None:
    sources = [str(path.relative_to(ROOT)) for path in files() if path.suffix in CPP]
    if sources:
        run_tool(tool("clang-format"), "--dry-run", "-Werror", *sources)


def test_ruff() -> None:
    run_tool(tool("ruff"), "check", "--output-format", "concise", "lab", "tests")


def test_ruff_format() -> None:
    run_tool(tool("ruff"), "format", "--check", "lab", "tests")


def test_mypy() -> None:
    # Its cache misses a submodule that appeared after a failing run: only a run without cache is believed to fail.
    if subprocess.run([sys.executable, "-m", "mypy"], cwd=ROOT, capture_output=True, check=False).returncode != 0:
        run_tool(sys.executable, "-m", "mypy", "--cache-dir", "/dev/null")


@pytest.mark.parametrize("folder", ["mutants", "fuzz", "emulated", "compilers"])
def test_mypy_of_the_tools_among_the_tests(folder: str) -> None:
    sources = [str(path.relative_to(ROOT)) for path in files(f"tests/{folder}") if path.suffix == ".py"]
    environment = {**os.environ, "MYPYPATH": os.pathsep.join(["lab", "tests/mutants"])}
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *sources], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


def test_the_bootstrap_is_a_posix_shell_script() -> None:
    run_tool("sh", "-n", "loam")
    run_tool("bash", "-n", ".ci/run")
