"""What must be flagged, and what must not: one test per way in which a preloaded allocator is not the one in use."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from interposing import BUMP, BURN, MAIN, SHIM, compile_c, custom, library, prove, reasons_of, tool

from loam_lab.base import paths
from loam_lab.subjects.allocators import preflight, registry

REAL = ("jemalloc", "tcmalloc", "tbb", "mimalloc", "loam", "bump", "pool", "design")
UNDER_TEST = "mimalloc"
CXX_MAIN = """
#include <memory>
#include <string>
#include <vector>
int main() {
  std::vector<std::unique_ptr<std::string>> kept;
  for (int i = 0; i < 200000; ++i) {
    kept.push_back(std::make_unique<std::string>(i % 100, 'x'));
    if (kept.size() > 1000) kept.erase(kept.begin(), kept.begin() + 500);
  }
  return kept.empty();
}
"""


@pytest.fixture(scope="module")
def program(open_folder: Path) -> Path:
    return compile_c(open_folder, "program", MAIN)


# ---- controls: these must verify ----


@pytest.mark.parametrize("name", ["glibc", "glibc:tcache=0", *REAL])
def test_real_allocators_verify(name: str, program: Path, open_folder: Path) -> None:
    assert prove(name, program).status == "proven"
    cxx = compile_c(open_folder, "cxx", CXX_MAIN, "-std=c++17", language="c++")
    assert prove(name, cxx).status == "proven"


@pytest.mark.parametrize("name", ["glibc", "glibc:tcache=0", *REAL])
def test_real_allocators_verify_under_python(name: str) -> None:
    code = "x = [object() for _ in range(300000)]; s = [str(i) * 50 for i in range(20000)]"
    proof = prove(name, sys.executable, "-c", code)
    assert proof.status == "proven", proof.reasons


@pytest.mark.parametrize("name", REAL)
def test_preload_wins_over_an_allocator_the_program_was_linked_with(name: str, open_folder: Path) -> None:
    bump = library(open_folder, "libbump.so", BUMP)
    linked = compile_c(open_folder, "linked-bump", MAIN, "-Wl,--no-as-needed", str(bump), f"-Wl,-rpath,{open_folder}")
    assert prove(name, linked).status == "proven"
    assert prove("glibc", linked, 1).status == "wrong"  # nothing preloaded: the linked one serves


@pytest.mark.parametrize("name", REAL)
def test_preload_wins_over_a_real_allocator_the_program_was_linked_with(name: str, open_folder: Path) -> None:
    other = "tcmalloc" if name == "jemalloc" else "jemalloc"
    linked = compile_c(open_folder, f"linked-{other}", MAIN, "-Wl,--no-as-needed", str(registry.load(other).path))
    proof = prove(name, linked)
    # They leave operators to others: here jemalloc's, which would free their blocks.
    if name in ("tbb", "bump"):
        assert proof.status == "wrong" and "operator delete comes from" in reasons_of(proof)
    else:
        assert proof.status == "proven", proof.reasons


def test_fixed_position_program_that_takes_the_address_of_malloc_verifies(open_folder: Path) -> None:
    source = MAIN + "void* (*volatile table[])(size_t) = {malloc}; void (*volatile other[])(void*) = {free};\n"
    assert prove(UNDER_TEST, compile_c(open_folder, "fixed", source, "-no-pie", "-fno-pic")).status == "proven"


def test_forks_and_program_chains_verify(program: Path, open_folder: Path) -> None:
    source = (
        "#include <sys/wait.h>\n#include <unistd.h>\n"
        + BURN
        + """
    int main(void) { if (fork() == 0) { burn(60); exit(0); } burn(30); wait(0); return 0; }"""
    )
    forked = prove(UNDER_TEST, compile_c(open_folder, "forks", source))
    assert forked.status == "proven" and len(forked.processes) == 2
    chain = prove(UNDER_TEST, "/bin/sh", "-c", f"{program} 400; exec {program} 400")
    assert chain.status == "proven", chain.reasons
    assert len(chain.processes) == 3


WRAPPER = f"""#include <string.h>
#include <unistd.h>
{BURN}
int main(int argc, char** argv) {{
  burn(60);
  if (strcmp(argv[1], "--clear") == 0) execle(argv[2], argv[2], argv[3], (char*)0, (char*[]){{0}});
  execv(argv[1], argv + 1);
  return 1;
}}"""


def test_wrapper_that_executes_a_proven_program_verifies_by_its_start(program: Path, open_folder: Path) -> None:
    wrapper = compile_c(open_folder, "wrapper", WRAPPER)
    proof = prove(UNDER_TEST, wrapper, wrapper, program, 60)
    assert proof.status == "proven", proof.reasons
    assert [p["status"] for p in proof.processes] == ["proven"] * 3
    assert any("executed another program" in note for note in proof.notes)


def test_wrapper_whose_program_is_not_proven_is_not_either(program: Path, open_folder: Path) -> None:
    wrapper = compile_c(open_folder, "clearing", WRAPPER)
    assert prove(UNDER_TEST, wrapper, "--clear", program, 60).status == "unproven"
    ends = compile_c(open_folder, "ending", f"{ENDS}int main(void) {{ burn(60); raise(SIGKILL); }}")
    proof = prove(UNDER_TEST, wrapper, ends)
    assert proof.status == "unproven" and [p["status"] for p in proof.processes] == ["unproven"] * 2


# ---- the object is no allocator ----


def test_missing_file(program: Path, open_folder: Path) -> None:
    proof = prove(custom(open_folder / "absent.so"), program)
    assert proof.status == "wrong" and "malloc" in reasons_of(proof)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="-m32 is x86's")
def test_32_bit_object(program: Path, open_folder: Path) -> None:
    narrow = library(open_folder, "narrow.so", "void* malloc(unsigned n) { return 0; }", "-m32", "-nostdlib")
    assert prove(custom(narrow), program).status == "wrong"


def test_shared_object_without_malloc(program: Path, open_folder: Path) -> None:
    assert prove(custom(library(open_folder, "empty.so", "int answer = 42;")), program).status == "wrong"


def test_malloc_without_the_aligned_functions(program: Path, open_folder: Path) -> None:
    proof = prove(custom(library(open_folder, "partial.so", BUMP, "-DNO_ALIGNED")), program)
    assert proof.status == "wrong" and "posix_memalign, aligned_alloc, memalign come from" in reasons_of(proof)


def test_forwarding_shim(program: Path, open_folder: Path) -> None:
    shim = library(open_folder, "shim.so", SHIM)
    proof = prove(custom(shim), program)
    assert proof.status == "wrong" and "forwarded" in reasons_of(proof)
    assert prove(custom(shim, forwards="glibc"), program).status == "proven"  # declared: allowed


def test_complete_small_allocator_verifies(program: Path, open_folder: Path) -> None:
    assert prove(custom(library(open_folder, "bump.so", BUMP)), program, 1).status == "proven"


def test_operator_new_from_a_third_library(open_folder: Path) -> None:
    third = library(
        open_folder, "libthird.so", "#include <cstdlib>\n#include <new>\nvoid* operator new(std::size_t n) { return malloc(n); }",
        language="c++",
    )  # fmt: skip
    # volatile: the compiler may leave out a pair of new and delete
    source = "int main() { for (int i = 0; i < 1000; ++i) { int* volatile p = new int(i); delete p; } return 0; }"
    linked = compile_c(open_folder, "uses-third", source, str(third), f"-Wl,-rpath,{open_folder}", language="c++")
    bump = custom(library(open_folder, "bump.so", BUMP))  # it has no operator new of its own
    proof = prove(bump, linked)
    assert (
        proof.status == "wrong"
        and "operator new comes from" in reasons_of(proof)
        and "libthird.so" in reasons_of(proof)
    )
    own = compile_c(
        open_folder, "own-new", "#include <cstdlib>\n#include <new>\nvoid* operator new(std::size_t n) { return malloc(n); }\n"
        + source, language="c++",
    )  # fmt: skip
    assert prove(UNDER_TEST, own).status == "wrong"


# ---- the program cannot be preloaded, or goes past what is preloaded ----


def test_static_program(open_folder: Path) -> None:
    static = compile_c(open_folder, "static", MAIN, "-static")
    proof = prove(UNDER_TEST, static)
    assert proof.status == "unproven" and "linked statically" in reasons_of(proof)
    assert prove("glibc", static).status == "unproven"  # nor is it known which glibc is inside


def test_allocator_linked_into_the_program(open_folder: Path) -> None:
    exported = compile_c(open_folder, "own-exported", BUMP + MAIN)
    assert prove(UNDER_TEST, exported, 1).status == "wrong"
    hidden = compile_c(open_folder, "own-hidden", BUMP + MAIN, '-DEXPORT=__attribute__((visibility("hidden")))')
    proof = prove(UNDER_TEST, hidden, 1)
    assert proof.status == "wrong" and "does not export" in reasons_of(proof)


def test_deepbind(open_folder: Path) -> None:
    plugin = library(open_folder, "plugin.so", BURN + "void work(void) { burn(30); }")
    source = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    int main(int argc, char** argv) { ((void (*)(void))dlsym(dlopen(argv[1], RTLD_NOW | FLAG), "work"))(); return 0; }"""
    deep = compile_c(open_folder, "deep", source, "-DFLAG=RTLD_DEEPBIND")
    proof = prove(UNDER_TEST, deep, plugin)
    assert proof.status == "wrong" and "RTLD_DEEPBIND" in reasons_of(proof)
    assert prove(UNDER_TEST, compile_c(open_folder, "shallow", source, "-DFLAG=0"), plugin).status == "proven"


def test_other_linker_namespace(open_folder: Path) -> None:
    plugin = library(open_folder, "plugin.so", BURN + "void work(void) { burn(30); }")
    source = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    int main(int argc, char** argv) {
      ((void (*)(void))dlsym(dlmopen(LM_ID_NEWLM, argv[1], RTLD_NOW), "work"))();
      return 0;
    }"""
    assert prove(UNDER_TEST, compile_c(open_folder, "namespaces", source), plugin).status == "unproven"


ENDS = f"#include <signal.h>\n#include <sys/syscall.h>\n#include <sys/wait.h>\n#include <unistd.h>\n{BURN}"


@pytest.mark.parametrize("ending", ["syscall(SYS_exit_group, 0)", "abort()", "raise(SIGKILL)"])
def test_end_that_nothing_is_told_of(ending: str, open_folder: Path) -> None:
    proof = prove(UNDER_TEST, compile_c(open_folder, "ends", f"{ENDS}int main(void) {{ burn(30); {ending}; }}"))
    assert proof.status == "unproven" and "no exit record" in reasons_of(proof)


@pytest.mark.parametrize("ending", ["_exit(0)", "_Exit(0)", "quick_exit(0)"])
def test_end_without_exit_handlers_verifies(ending: str, open_folder: Path) -> None:
    program = compile_c(open_folder, "quick", f"{ENDS}int main(void) {{ burn(30); {ending}; }}")
    proof = prove(UNDER_TEST, program)
    assert proof.status == "proven" and len(proof.processes) == 1, proof.reasons
    # Its heap is looked at there too.
    taken = '((void* (*)(size_t))dlsym(dlopen("libc.so.6", RTLD_NOW), "malloc"))(100)'
    libc = f"#include <dlfcn.h>\n{ENDS}int main(void) {{ {taken}; burn(30); {ending}; }}"
    assert prove(UNDER_TEST, compile_c(open_folder, "quick-libc", libc)).status == "wrong"


def test_forked_children_that_end_without_exit_handlers_verify(open_folder: Path) -> None:
    for fork in ("fork", "vfork"):  # a child of vfork has its parent's memory
        source = f"{ENDS}int main(void) {{ if ({fork}() == 0) _exit(0); burn(30); wait(0); return 0; }}"
        proof = prove(UNDER_TEST, compile_c(open_folder, fork, source))
        assert proof.status == "proven" and len(proof.processes) == 2, proof.reasons


def test_wrapper_that_clears_the_environment(program: Path) -> None:
    assert prove(UNDER_TEST, "/usr/bin/env", program, 60).status == "proven"  # control: env alone passes it on
    assert prove(UNDER_TEST, "/usr/bin/env", "-i", program, 60).status == "unproven"


def test_setting_that_does_not_arrive(program: Path) -> None:
    proof = prove("glibc:tcache=0", "/usr/bin/env", "-u", "GLIBC_TUNABLES", program, 100)
    assert proof.status == "wrong" and "was not passed on" in reasons_of(proof)


@pytest.mark.parametrize("arrived", ["glibc.malloc.tcache_count=7", "glibc.malloc.tcache_count=00", ""])
def test_setting_that_arrives_with_another_value(program: Path, arrived: str) -> None:
    proof = prove("glibc:tcache=0", "/usr/bin/env", f"GLIBC_TUNABLES={arrived}", program, 100)
    assert proof.status == "wrong" and f'was not passed on: GLIBC_TUNABLES is "{arrived}"' in reasons_of(proof)


def test_child_program_that_cannot_be_preloaded(program: Path, open_folder: Path) -> None:
    static = compile_c(open_folder, "static", MAIN, "-static")
    proof = prove(UNDER_TEST, "/bin/sh", "-c", f"{program} 30; {static} 60; true")
    assert proof.status == "unproven" and "did not report" in reasons_of(proof)
    little = prove(UNDER_TEST, "/bin/sh", "-c", f"{program} 400; {static} 1; true")
    assert little.status == "proven" and little.cpu_share_proven >= 0.95


# ---- privileges ----

needs_root = pytest.mark.skipif(os.geteuid() != 0 or not tool("setpriv"), reason="needs root and setpriv")
AS_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")


@needs_root
def test_set_user_id_program(program: Path, open_folder: Path) -> None:
    copy = _copy(program, open_folder / "setuid")
    assert prove(UNDER_TEST, *AS_NOBODY, copy, 60).status == "proven"  # control: changing the user alone is fine
    copy.chmod(0o4755)
    assert prove(UNDER_TEST, *AS_NOBODY, copy, 60).status == "unproven"
    assert any("set-user-id" in sentence for sentence in preflight.obstacles([str(copy)]))


@needs_root
def test_file_capabilities(program: Path, open_folder: Path) -> None:
    copy = _copy(program, open_folder / "capable")
    setcap = tool("setcap")
    if setcap is None or subprocess.run([setcap, "cap_net_bind_service+ep", str(copy)], check=False).returncode != 0:
        pytest.skip("file capabilities cannot be set here")
    assert prove(UNDER_TEST, *AS_NOBODY, copy, 60).status == "unproven"
    assert any("file capabilities" in sentence for sentence in preflight.obstacles([str(copy)]))


def _copy(program: Path, to: Path) -> Path:
    to.write_bytes(program.read_bytes())
    to.chmod(0o755)
    return to


# ---- other runtimes, by hand: what matters is made small ----

BARE = """
static long call(long n, long a) {
  long r;
  __asm__ volatile("syscall" : "=a"(r) : "a"(n), "D"(a) : "rcx", "r11", "memory");
  return r;
}
void _start(void) {
  for (volatile long i = 0; i < 30000000; ++i) {}
  call(231, 0);
  for (;;) {}
}
"""
needs_x86 = pytest.mark.skipif(os.uname().machine != "x86_64", reason="the small runtimes are written for x86-64")


@needs_x86
def test_go_like_program(open_folder: Path) -> None:
    mark = '__attribute__((section(".go.buildinfo"), used)) static const char go[] = "go";\n'
    alone = compile_c(open_folder, "go-like", mark + BARE, "-nostdlib", "-static")
    proof = prove(UNDER_TEST, alone)
    assert proof.status == "unproven" and "Go program" in reasons_of(proof)
    # With cgo it is linked dynamically, so the probe starts; but it leaves by the system call, past all exit handlers.
    cgo = "#include <sys/syscall.h>\n#include <unistd.h>\n" + mark + BURN
    dynamic = compile_c(open_folder, "cgo-like", cgo + "int main(void) { burn(30); syscall(SYS_exit_group, 0); }")
    proof = prove(UNDER_TEST, dynamic)
    assert proof.status == "unproven" and "Go program" in reasons_of(proof)


@needs_x86
def test_program_against_another_libc(open_folder: Path) -> None:
    # The "dynamic linker" of this program knows no LD_PRELOAD, as far as the kernel cares it may be any program.
    linker = compile_c(open_folder, "ld-musl-tests.so.1", BARE, "-nostdlib", "-static-pie", "-fPIE")
    foreign = compile_c(open_folder, "foreign", "int main(void) { return 0; }", f"-Wl,--dynamic-linker={linker}")
    proof = prove(UNDER_TEST, foreign)
    assert proof.status == "unproven" and "musl" in reasons_of(proof)


def test_java_like_program_is_reported_not_refused(open_folder: Path) -> None:
    jvm = library(open_folder, "libjvm.so", "int jvm(void) { return 0; }", "-Wl,-soname,libjvm.so")
    source = "int jvm(void);\n" + BURN + "int main(void) { burn(30); return jvm(); }"
    java = compile_c(open_folder, "java-like", source, str(jvm), f"-Wl,-rpath,{open_folder}")
    proof = prove(UNDER_TEST, java)
    assert proof.status == "proven" and any("Java" in warning for warning in proof.warnings)


# ---- other runtimes, real: only with ./loam test --all ----


@pytest.mark.exhaustive
@pytest.mark.skipif(not tool("go"), reason="no Go here")
def test_go_program(open_folder: Path) -> None:
    (open_folder / "main.go").write_text(
        "package main\nfunc main() { s := 0; for i := 0; i < 300000000; i++ { s += i }; println(s) }\n"
    )
    environment = {**os.environ, "GOCACHE": str(open_folder / "go-cache"), "GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}
    subprocess.run(
        [str(tool("go")), "build", "-o", str(open_folder / "gone"), str(open_folder / "main.go")],
        env=environment,
        check=True,
    )
    proof = prove(UNDER_TEST, open_folder / "gone")
    assert proof.status == "unproven" and "Go program" in reasons_of(proof)


@pytest.mark.exhaustive
@pytest.mark.skipif(not tool("java"), reason="no Java here")
def test_java() -> None:
    proof = prove(UNDER_TEST, "java", "-version")
    assert any("Java" in text for text in (*proof.warnings, *proof.reasons))


@pytest.mark.exhaustive
@pytest.mark.skipif(not tool("musl-gcc"), reason="no musl here")
def test_musl_program(open_folder: Path) -> None:
    (open_folder / "musl.c").write_text(MAIN)
    subprocess.run([str(tool("musl-gcc")), "-o", str(open_folder / "musl"), str(open_folder / "musl.c")], check=True)
    assert prove(UNDER_TEST, open_folder / "musl").status != "proven"


def test_every_allocator_of_the_tree_is_covered_here() -> None:
    contents = {file.stem: tomllib.loads(file.read_text()) for file in (paths.root() / "allocators").glob("*.toml")}
    # What is built from sources is proven where it is built: test_allocator_builds.py.
    files = {name for name, content in contents.items() if "source" not in content}
    assert files == {"glibc", *REAL}, "add the newcomer to REAL"


def test_a_program_with_libstdcxx_inside_is_proven_by_its_malloc(open_folder: Path) -> None:
    source = "#include <string>\nint main(int c, char**) { std::string s(100 * c, 'x'); return s.size() != 100; }\n"
    program = compile_c(open_folder, "inside", source, "-static-libstdc++", "-rdynamic", "-Wl,-u,_Znwm", language="c++")
    assert preflight.carries_libstdcxx(program) and not preflight.carries_libstdcxx(Path("/bin/true"))
    assert prove("glibc", program).status == "proven"
