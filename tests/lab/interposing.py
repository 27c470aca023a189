"""Small programs and libraries for the tests of interposition, compiled on the spot, and runs under the probe."""

from __future__ import annotations

import dataclasses
import functools
import shutil
import subprocess
from pathlib import Path
from typing import Any

from loam_lab.setup import build
from loam_lab.subjects.allocators import building, identify, registry, verify
from loam_lab.subjects.allocators.probe import Proof
from loam_lab.subjects.allocators.registry import Allocator

# Uses memory, then the processor for argv[1] milliseconds (default 30): long enough that start and end weigh little.
BURN = """
#include <stdlib.h>
#include <string.h>
#include <time.h>
static double cpu_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}
static void burn(int ms) {
  const double end = cpu_ms() + ms;
  do
    for (int i = 0; i < 1000; ++i) {
      char* volatile p = malloc(100);
      memset(p, i, 100);
      free(p);
    }
  while (cpu_ms() < end);
}
"""
MAIN = BURN + "int main(int argc, char** argv) { burn(argc > 1 ? atoi(argv[1]) : 30); return 0; }\n"

# A complete family that never frees, from a static array: enough for programs that end soon.
BUMP = """
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
static char arena[256 << 20] __attribute__((aligned(4096)));
static size_t used;
#ifndef EXPORT
#define EXPORT
#endif
static void* take(size_t alignment, size_t n) {
  if (alignment < 16) alignment = 16;
  for (size_t old = __atomic_load_n(&used, __ATOMIC_RELAXED);;) {
    const size_t at = (old + 16 + alignment - 1) / alignment * alignment, next = at + n;
    if (next > sizeof arena) return 0;
    if (__atomic_compare_exchange_n(&used, &old, next, 1, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      *(size_t*)(arena + at - 8) = n;
      return arena + at;
    }
  }
}
EXPORT void* malloc(size_t n) { return take(16, n); }
EXPORT void free(void* p) { (void)p; }
EXPORT void* calloc(size_t a, size_t b) { return take(16, a * b); }
EXPORT void* realloc(void* p, size_t n) {
  void* q = take(16, n);
  if (p != 0 && q != 0) {
    const size_t before = *(size_t*)((char*)p - 8);
    memcpy(q, p, before < n ? before : n);
  }
  return q;
}
#ifndef NO_ALIGNED
EXPORT void* memalign(size_t a, size_t n) { return take(a, n); }
EXPORT void* aligned_alloc(size_t a, size_t n) { return take(a, n); }
EXPORT int posix_memalign(void** into, size_t a, size_t n) { *into = take(a, n); return *into ? 0 : ENOMEM; }
#endif
EXPORT size_t malloc_usable_size(void* p) { return p ? *(size_t*)((char*)p - 8) : 0; }
"""

# Hands everything to glibc and does not say so.
SHIM = """
#include <stddef.h>
extern void* __libc_malloc(size_t);
extern void __libc_free(void*);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);
void* malloc(size_t n) { return __libc_malloc(n); }
void free(void* p) { __libc_free(p); }
void* calloc(size_t a, size_t b) { return __libc_calloc(a, b); }
void* realloc(void* p, size_t n) { return __libc_realloc(p, n); }
void* memalign(size_t a, size_t n) { return __libc_memalign(a, n); }
void* aligned_alloc(size_t a, size_t n) { return __libc_memalign(a, n); }
int posix_memalign(void** into, size_t a, size_t n) { *into = __libc_memalign(a, n); return *into ? 0 : 12; }
size_t malloc_usable_size(void* p) { return p ? (((size_t*)p)[-1] & ~(size_t)7) - 8 : 0; }
"""

FLAGS = ("-O1", "-fno-builtin", "-w")


@functools.cache
def probe_path() -> Path:
    """The probe of the release build."""
    return Path(build.ensure_built(["probe"])["libraries"]["probe"])


def compile_c(folder: Path, name: str, source: str, *flags: str, language: str = "c") -> Path:
    """Compile one source text; flags come after it, so that libraries resolve.

    raises: AssertionError with the compiler's words
    """
    out = folder / name
    text = folder / f"{name}.{'cc' if language == 'c++' else 'c'}"
    text.write_text(source)
    compiler = "g++" if language == "c++" else "gcc"
    done = subprocess.run(
        [compiler, *FLAGS, "-o", str(out), str(text), *flags], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return out


def library(folder: Path, name: str, source: str, *flags: str, language: str = "c") -> Path:
    """Compile a shared object."""
    return compile_c(folder, name, source, "-shared", "-fPIC", *flags, language=language)


def custom(path: Path, **changes: Any) -> Allocator:
    """An allocator made of a shared object, past the checks that the registry would make."""
    try:
        build_id = identify.identify(path).build_id
    except Exception:
        build_id = ""
    base = registry.load("mimalloc")
    made = dataclasses.replace(
        base, name="custom", base="custom", path=str(path), libraries=(str(path),), build_id=build_id, symbols=()
    )
    return dataclasses.replace(made, **changes)


def prove(allocator: Allocator | str, *command: object) -> Proof:
    """Run a command under an allocator and return the proof; its output is swallowed."""
    if isinstance(allocator, str):
        building.ensure_own([allocator])
    loaded = registry.load(allocator) if isinstance(allocator, str) else allocator
    proof, _, _ = verify.under(loaded, probe_path(), [str(part) for part in command], stdout=subprocess.DEVNULL)
    return proof


def reasons_of(proof: Proof) -> str:
    """All reasons in one text, for looking into."""
    return "\n".join(proof.reasons)


def tool(name: str) -> str | None:
    """A program from PATH or the administrator's folders."""
    return shutil.which(name) or shutil.which(name, path="/usr/sbin:/sbin:/usr/local/go/bin")
