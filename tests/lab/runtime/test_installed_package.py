"""The installed package, from outside the tree: examples in C++ (CMake) and C (pkg-config, CMake), headers, symbols."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

import loam_lab
from loam_lab.dev.testing import lots
from loam_lab.setup import build

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ("bank", "queue", "list")
# The version of the library's symbols: that of the package without its last number.
SYMBOLS = f"LOAM_{loam_lab.__version__.rpartition('.')[0]}"

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path | None = None, **environment: str) -> str:
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False, timeout=280
    )
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the package is installed: a path with a blank in it."""
    build.ensure_targets("release", ["loam-package"])
    folder = tmp_path_factory.mktemp("installed") / "with a blank"
    run("cmake", "--install", ROOT / "build/release", "--component", "loam", "--prefix", folder)
    return folder


# The algorithms whose accesses a program in C may have inline.
INLINE = ("norec", "etl-wb", "dctl")
HEADERS_SHARE = 5


def libdir(prefix: Path) -> Path:
    folders = [path.parent for path in prefix.rglob("libloam-tm.a")]
    assert len(folders) == 1, folders
    return folders[0]


def pkg_config(prefix: Path) -> dict[str, str]:
    return {"PKG_CONFIG_PATH": str(libdir(prefix) / "pkgconfig").replace(" ", r" ")}


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_cpp_examples_build_with_cmake_and_run(kind: str, prefix: Path, tmp_path: Path) -> None:
    source = tmp_path / "the source"
    shutil.copytree(ROOT / "examples/cmake-cpp", source)
    flags = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DLOAM_USE_STATIC_LIBS={'ON' if kind == 'static' else 'OFF'}"]
    run("cmake", "-S", source, "-B", tmp_path / "build", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror", *flags)
    run("cmake", "--build", tmp_path / "build", "--parallel", "2")
    run("ctest", "--test-dir", tmp_path / "build", "--output-on-failure")
    needed = run("readelf", "--dynamic", tmp_path / "build/bank")
    assert ("libloam-tm.so" in needed) == (kind == "shared")


def names_of_algorithms(prefix: Path, folder: Path) -> list[str]:
    program = folder / "names.c"
    program.write_text(
        "#include <loam/tm.h>\n#include <stdio.h>\n"
        "int main(void) { for (unsigned i = 0; loam_algorithm_name(i); ++i) puts(loam_algorithm_name(i)); }\n"
    )
    run("cc", program, f"-I{prefix}/include", libdir(prefix) / "libloam-tm.so", f"-Wl,-rpath,{libdir(prefix)}",
        "-o", folder / "names")  # fmt: skip
    return run(folder / "names").split()


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_c_examples_build_with_pkg_config_and_run_under_every_algorithm(
    kind: str, prefix: Path, tmp_path: Path
) -> None:
    source = tmp_path / "the source"
    shutil.copytree(ROOT / "examples/pkg-config-c", source)
    make = ("make", "CFLAGS=-O2 -std=c11 -Wall -Wextra -Wpedantic -Werror", *(["STATIC=1"] if kind == "static" else []))
    run(*make, "all", cwd=source, **pkg_config(prefix))
    assert ("libloam-tm.so" in run("readelf", "--dynamic", source / "bank")) == (kind == "shared")
    names = names_of_algorithms(prefix, tmp_path)
    assert "etl-wb" in names
    for name in names:
        if name == "sequential":  # the examples start threads
            continue
        output = run(*make, "check", f"ALGORITHM={name}", cwd=source, **pkg_config(prefix))
        assert output.count(f"{name}: ") == len(PROGRAMS), output


@pytest.mark.parametrize("kind", ["shared", "static"])
@pytest.mark.parametrize("algorithm", INLINE)
def test_c_examples_with_inline_accesses_run_under_their_algorithm_alone(
    algorithm: str, kind: str, prefix: Path, tmp_path: Path
) -> None:
    source = tmp_path / "the source"
    shutil.copytree(ROOT / "examples/pkg-config-c", source)
    make = ("make", f"INLINE={algorithm}", "CFLAGS=-O2 -std=c11 -Wall -Wextra -Wpedantic -Werror",
            *(["STATIC=1"] if kind == "static" else []))  # fmt: skip
    output = run(*make, "check", cwd=source, **pkg_config(prefix))
    assert output.count(f"{algorithm}: ") == len(PROGRAMS), output
    if kind == "shared":  # what the inline accesses look at
        looked_at = "norec_sequence" if algorithm == "norec" else "_ZN4loam2tm6sharedE"
        assert looked_at in run("nm", "--dynamic", source / "bank")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libdir(prefix))}
    done = subprocess.run([source / "bank", "tl2"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert f"algorithm=tl2: accesses of this program are compiled for {algorithm}" in done.stderr


# In C and in C++, with no shared library at all too (-static: what needs libdl and libm has them).
@pytest.mark.parametrize("flags", [(), ("-static",)])
@pytest.mark.parametrize("language", ["c", "c++"])
def test_the_archive_has_a_package_of_its_own(
    language: str, flags: tuple[str, ...], prefix: Path, tmp_path: Path
) -> None:
    program = tmp_path / "count.c"
    program.write_text(
        "#include <loam/tm.h>\nstatic uint64_t x;\n"
        "static void add(loam_tx *tx, void *unused) { (void)unused; loam_tx_write_u64(tx, &x, loam_tx_read_u64(tx, &x) + 1); }\n"
        "int main(void) { loam_atomically(add, NULL, 0); return x == 1 ? 0 : 1; }\n"
    )
    for options in (["--cflags", "--libs"], ["--cflags", "--libs", "--static"]):
        flags_of_package = shlex.split(run("pkg-config", *options, "loam-tm-static", **pkg_config(prefix)))
        compiler = ["cc"] if language == "c" else ["c++", "-std=c++20", "-x", "c++"]
        run(*compiler, program, "-x", "none", *flags, *flags_of_package, "-o", tmp_path / "count")
        run(tmp_path / "count")
        assert "libloam-tm.so" not in run("readelf", "--dynamic", tmp_path / "count")


def test_an_algorithm_without_inline_accesses_does_not_compile(prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "empty.c"
    program.write_text("#include <loam/tm.h>\nint main(void) { return 0; }\n")
    for name in ("tl2", "etl-wt", "etl-wb-hash", "etl", "two-phase", "1", "swisstm", ""):
        command = ("cc", "-fsyntax-only", f"-DLOAM_TM_ALGORITHM={name}", program, f"-I{prefix}/include")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode != 0, name
        assert "LOAM_TM_ALGORITHM: norec, etl-wb and dctl have inline accesses" in done.stderr
    # A name's words may be macros of the program.
    for name in INLINE:
        own = ("-Dnorec=1", "-Dwb=2", "-Dhash(x)=3", f"-DLOAM_TM_ALGORITHM={name}")
        run("cc", "-fsyntax-only", *own, program, f"-I{prefix}/include")
        run("c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", *own, "-x", "c++", program,
            f"-I{prefix}/include")  # fmt: skip


def test_the_example_of_malloc_builds_with_cmake_and_is_served_by_it(prefix: Path, tmp_path: Path) -> None:
    source = tmp_path / "the source"
    shutil.copytree(ROOT / "examples/cmake-malloc", source)
    flags = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_C_FLAGS=-Wall -Wextra -Wpedantic -Werror"]
    run("cmake", "-S", source, "-B", tmp_path / "build", *flags)
    run("cmake", "--build", tmp_path / "build")
    run("ctest", "--test-dir", tmp_path / "build", "--output-on-failure")
    assert "libloam-malloc.so" in run("readelf", "--dynamic", tmp_path / "build/holdings")
    output = run(tmp_path / "build/holdings", LOAM_MALLOC_HARDENED="1")
    assert "10000 blocks of 1000 bytes took" in output and ", hardened\n" in output


def test_the_example_of_the_managed_heap_builds_with_cmake_and_runs(prefix: Path, tmp_path: Path) -> None:
    source = tmp_path / "the source"
    shutil.copytree(ROOT / "examples/cmake-gc", source)
    flags = [f"-DCMAKE_PREFIX_PATH={prefix}", "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Werror"]
    run("cmake", "-S", source, "-B", tmp_path / "build", *flags)
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/people").startswith("1000 people, ")
    flags_of_package = shlex.split(run("pkg-config", "--cflags", "--libs", "loam-gc", **pkg_config(prefix)))
    run("c++", "-std=c++20", source / "people.cpp", *flags_of_package, "-o", tmp_path / "people")
    assert run(tmp_path / "people").startswith("1000 people, ")


def test_the_examples_of_delegation_build_with_cmake_and_run(prefix: Path, tmp_path: Path) -> None:
    source = tmp_path / "the source"
    for name in ("cmake-delegation", "pkg-config-delegation"):
        shutil.copytree(ROOT / "examples" / name, source / name)
    warnings = "-Wall -Wextra -Wpedantic -Werror"
    flags = [f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_CXX_FLAGS={warnings}", f"-DCMAKE_C_FLAGS={warnings}"]
    run("cmake", "-S", source / "cmake-delegation", "-B", tmp_path / "build", *flags)
    run("cmake", "--build", tmp_path / "build")
    assert run(tmp_path / "build/words") == "long 6000, short 6000, all 24000\n"
    assert run(tmp_path / "build/accounts") == "cc-synch: 15000 transfers, 800 in all accounts\n"


def test_the_c_example_of_delegation_builds_with_pkg_config_and_runs_under_every_scheme(
    prefix: Path, tmp_path: Path
) -> None:
    source = tmp_path / "the source"
    shutil.copytree(ROOT / "examples/pkg-config-delegation", source)
    make = ("make", "CFLAGS=-O2 -std=c11 -Wall -Wextra -Wpedantic -Werror")
    schemes = sorted(file.stem.replace("_", "-") for file in (ROOT / "runtime/delegation/schemes").glob("*.hpp"))
    assert "server" in schemes
    for name in schemes:
        output = run(*make, "check", f"SCHEME={name}", cwd=source, **pkg_config(prefix))
        assert f"{name}: 15000 transfers, 800 in all accounts" in output
    done = subprocess.run([source / "accounts", "cc"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith("accounts: scheme=cc: there is no such one; there are cc-synch")


def test_pkg_config_links_malloc_into_a_program_that_calls_none(prefix: Path, tmp_path: Path) -> None:
    program = tmp_path / "none.c"
    program.write_text("int main(void) { return 0; }\n")
    flags = run("pkg-config", "--cflags", "--libs", "loam-malloc", **pkg_config(prefix)).strip()
    run("sh", "-c", f"cc '{program}' -o '{tmp_path}/none' -Wl,--as-needed {flags}")
    done = subprocess.run(
        [tmp_path / "none"], env={**os.environ, "LD_LIBRARY_PATH": str(libdir(prefix)), "LOAM_MALLOC_STATS": "1"},
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert done.stderr.startswith("loam malloc ")


def test_an_unknown_algorithm_is_named_with_the_nearest(prefix: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    shutil.copytree(ROOT / "examples/pkg-config-c", source)
    run("make", "bank", "STATIC=1", cwd=source, **pkg_config(prefix))
    done = subprocess.run([source / "bank", "etl-bw"], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2
    assert "algorithm=etl-bw: there is no such one; did you mean etl-wb?" in done.stderr


def test_a_moved_prefix_still_serves(prefix: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    shutil.copytree(prefix, moved, symlinks=True)
    source = tmp_path / "source"
    shutil.copytree(ROOT / "examples/pkg-config-c", source)
    run("make", "check", cwd=source, **pkg_config(moved))
    assert str(moved) in run("pkg-config", "--cflags", "loam-tm", **pkg_config(moved))


def test_versions_agree(prefix: Path, tmp_path: Path) -> None:
    version = run("pkg-config", "--modversion", "loam-tm", **pkg_config(prefix)).strip()
    program = tmp_path / "version.c"
    program.write_text("#include <loam/tm.h>\n#include <stdio.h>\nint main(void) { puts(loam_version()); }\n")
    run("cc", program, f"-I{prefix}/include", libdir(prefix) / "libloam-tm.so", f"-Wl,-rpath,{libdir(prefix)}",
        "-o", tmp_path / "version")  # fmt: skip
    assert run(tmp_path / "version").strip() == version
    soname = re.search(r"soname: \[(.*)\]", run("readelf", "--dynamic", libdir(prefix) / "libloam-tm.so"))
    assert version == loam_lab.__version__
    assert soname and soname[1] == f"libloam-tm.so.{version.partition('.')[0]}"


def public() -> re.Pattern[str]:
    """What the library may show: no namespace is among it that a source of the runtime hides."""
    hides = re.compile(r'namespace \[\[gnu::visibility\("hidden"\)\]\] (\w+)')
    sources = [file.read_text() for file in sorted((ROOT / "runtime").rglob("*.[ch]pp"))]
    hidden = sorted({name for source in sources for name in hides.findall(source)})
    assert "open" in hidden
    return re.compile(
        rf"loam_\w+$|loam::(base|platform|sync|reclaim)::|loam::tm::(Descriptor::|LogSpace::map\(|(?!({'|'.join(hidden)})\b)[a-z])"
        rf"|{re.escape(SYMBOLS)}$|typeinfo (name )?for loam::tm::Cancelled$"
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("loam_version", True), ("loam::tm::configure(loam::tm::Config const&)", True), (SYMBOLS, True), ("LOAM_0.0", False),
        ("loam::tm::Descriptor::current_", True), ("loam::base::JsonLine::open(int)", True),
        ("loam::tm::open::begin(loam_tx*)", False), ("loam::tm::open", False), ("loam::tm::EtlWb<false>::begin()", False),
        ("std::vector<int>::push_back(int)", False), ("loam::heap::current", False), ("malloc", False),
    ],
)  # fmt: skip
def test_what_is_public(name: str, shown: bool) -> None:
    assert bool(public().match(name)) == shown


def test_only_public_names_are_shown(prefix: Path) -> None:
    listed = run("nm", "--dynamic", "--defined-only", "--demangle", libdir(prefix) / "libloam-tm.so")
    names = [line.split(maxsplit=2)[2].split("@")[0] for line in listed.splitlines()]
    ours = public()
    assert [name for name in names if not ours.match(name)] == []
    declared = set(re.findall(r"\b(loam_\w+)\(", (prefix / "include/loam/tm.h").read_text()))
    declared -= {"loam_tx_begin_after"}  # in builds with sanitizers
    assert declared - set(names) == set()


def compile_alone(prefix: Path, header: Path, command: Sequence[str], folder: Path) -> str:
    """Nothing (""), or what the compiler says to a file with nothing but that include, twice."""
    source = folder / f"{abs(hash(header))}{command[-1]}"
    line = f"#include <{header.relative_to(prefix / 'include')}>\n"
    source.write_text(line + line + "int main(void) { return 0; }\n")
    done = subprocess.run(
        [*command[:-1], "-Werror", f"-I{prefix}/include", "-fsyntax-only", source], capture_output=True, text=True, check=False
    )  # fmt: skip
    return done.stderr if done.returncode else ""


def test_every_header_compiles_alone_without_warnings(prefix: Path, tmp_path: Path) -> None:
    warnings = ["-Wall", "-Wextra", "-Wpedantic"]
    headers = sorted((prefix / "include").rglob("*.h*"))
    assert {"tm.h", "tm.hpp"} < {header.name for header in headers}
    assert all(header.is_relative_to(prefix / "include/loam") for header in headers), "nothing but loam/ is added"
    messages = {}
    # The public ones, and one in so many of those behind them; another lot with each change of the runtime.
    public = [header for header in headers if header.parent == prefix / "include/loam"]
    behind = [str(header) for header in headers if header not in public]
    share = 1 if os.environ.get("LOAM_TEST_ALL") else HEADERS_SHARE
    chosen = [Path(name) for name in lots.lot(behind, share, lots.sources_hash())]
    assert public and len(chosen) >= len(behind) // share > 0
    for header in [*public, *chosen]:
        if header.name.startswith("machine_"):  # of another processor, perhaps; machine.hpp chooses
            continue
        if header.name in {
            "tm_inlined.h",
            "tm_norec.h",
            "tm_records.h",
        }:  # parts of tm.h, below with what asks for them
            continue
        messages[header.name] = compile_alone(prefix, header, ["g++", "-std=c++20", *warnings, ".cpp"], tmp_path)
    for name in ("tm.h", "malloc.h", "delegation.h"):
        for standard in ("-std=c11", "-std=gnu17"):
            messages[f"{name} {standard}"] = compile_alone(
                prefix, prefix / "include/loam" / name, ["gcc", standard, *warnings, "-Wconversion", ".c"], tmp_path
            )
    for algorithm in INLINE:
        for language in (["gcc", "-std=c11", ".c"], ["gcc", "-std=gnu17", ".c"], ["g++", "-std=c++20", ".cpp"]):
            inline = [language[0], f"-DLOAM_TM_ALGORITHM={algorithm}", language[1], *warnings, language[2]]
            messages[f"tm.h {algorithm} {language[1]}"] = compile_alone(
                prefix, prefix / "include/loam/tm.h", inline, tmp_path
            )
    for name in ("tm.h", "tm.hpp", "malloc.h", "delegation.h"):
        header = prefix / "include/loam" / name
        messages[f"{name} strict"] = compile_alone(
            prefix, header, ["g++", "-std=c++20", *warnings, "-Wshadow", ".cpp"], tmp_path
        )
    assert {name: text for name, text in messages.items() if text} == {}


@pytest.mark.parametrize("compiler", ["clang", *(f"clang-{version}" for version in range(16, 20))])
def test_clang_says_nothing_to_the_public_headers(compiler: str, prefix: Path, tmp_path: Path) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    public = sorted((prefix / "include/loam").glob("*.h*"))
    strict = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow"]
    cxx = [compiler.replace("clang", "clang++"), "-std=c++20", *strict, ".cpp"]
    alone = [header for header in public if header.name not in {"tm_inlined.h", "tm_norec.h", "tm_records.h"}]
    messages = {header.name: compile_alone(prefix, header, cxx, tmp_path) for header in alone}
    for header in (header for header in alone if header.suffix == ".h"):
        messages[f"{header.name} in C"] = compile_alone(prefix, header, [compiler, "-std=c11", *strict, ".c"], tmp_path)
    for algorithm in INLINE:
        inline = [compiler, f"-DLOAM_TM_ALGORITHM={algorithm}", "-std=c11", *strict, ".c"]
        messages[f"tm.h {algorithm}"] = compile_alone(prefix, prefix / "include/loam/tm.h", inline, tmp_path)
    assert {name: text for name, text in messages.items() if text} == {}


@pytest.mark.parametrize("name", ["tm", "gc", "delegation"])
def test_an_older_standard_or_a_program_without_exceptions_gets_one_clear_error(
    name: str, prefix: Path, tmp_path: Path
) -> None:
    header = prefix / f"include/loam/{name}.hpp"
    for flags, needs in (
        (["-std=c++17"], "C++20: compile with -std=c++20 or later"),
        (["-std=c++20", "-fno-exceptions"], "exceptions: compile without -fno-exceptions"),
    ):
        output = compile_alone(prefix, header, ["g++", *flags, ".cpp"], tmp_path)
        errors = [line for line in output.splitlines() if "error:" in line]
        assert len(errors) == 1 and f"loam/{name}.hpp needs {needs}" in errors[0], output


@pytest.mark.parametrize("flags", [["-static-pie"], ["-static"], ["-no-pie"]])
def test_c_programs_link_in_every_way(flags: list[str], prefix: Path, tmp_path: Path) -> None:
    compile_flags = ["-fPIE"] if flags == ["-static-pie"] else []
    for name in PROGRAMS:
        run("cc", "-O2", *compile_flags, ROOT / f"examples/pkg-config-c/{name}.c", f"-I{prefix}/include", *flags,
            libdir(prefix) / "libloam-tm.a", "-lstdc++", "-lm", "-pthread", "-o", tmp_path / name)  # fmt: skip
        run(tmp_path / name)
