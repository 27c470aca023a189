"""What this shell hands down to every run: resource limits and environment variables."""

from __future__ import annotations

from collections.abc import Iterator

from loam_lab.commands.doctor.finding import Finding, View

# Variables that reach libraries and runtimes of the user's own commands; the lab drops those of allocators itself.
_TELLING = (
    "_RJEM_MALLOC_CONF", "JE_MALLOC_CONF", "HEAPPROFILE", "HEAPCHECK", "LD_BIND_NOW", "LD_BIND_NOT", "LD_DEBUG", "LD_PROFILE",
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "GOGC", "GOMEMLIMIT", "GODEBUG", "PYTHONMALLOC", "ASAN_OPTIONS",
    "OMP_NUM_THREADS", "OMP_PROC_BIND", "G_SLICE",
)  # fmt: skip
_TIGHT_STACK, _FEW_FILES, _FEW_PROCESSES = 2**20, 256, 256


def limits(view: View) -> Iterator[Finding]:
    """Resource limits (ulimit) that change what allocators do, or stop runs."""
    by_name: dict[str, str] = {}
    for line in view.tree.read("/proc/self/limits").splitlines()[1:]:
        by_name[line[:26].strip()] = line[26:].split()[0]
    sound = True
    for name, option, consequence in (
        ("Max address space", "-v", "allocators reserve address space: some fail, others fall back to small arenas"),
        ("Max data size", "-d", "allocators that extend the data segment fail early, those that map memory do not"),
        ("Max cpu time", "-t", "long runs are killed in the middle"),
        ("Max file size", "-f", "journals and results are cut"),
    ):  # fmt: skip
        if by_name.get(name, "unlimited") != "unlimited":
            sound = False
            yield Finding(
                "memory", "limits", "changes results", f"{name.lower()} is {by_name[name]} (ulimit {option})", consequence,
                f"ulimit {option} unlimited, or another shell",
            )  # fmt: skip
    stack = by_name.get("Max stack size", "")
    if stack == "unlimited":
        sound = False
        yield Finding(
            "memory", "limits", "changes results", "the stack is unlimited (ulimit -s)",
            "the kernel then uses the legacy layout: mappings grow upwards, with other alignments than elsewhere",
            "ulimit -s 8192",
        )  # fmt: skip
    elif stack.isdigit() and int(stack) < _TIGHT_STACK:
        sound = False
        yield Finding("memory", "limits", "changes results", f"the stack may have {stack} bytes (ulimit -s)",
                      "deep recursion ends by a signal", "ulimit -s 8192")  # fmt: skip
    for name, option, least in (("Max open files", "-n", _FEW_FILES), ("Max processes", "-u", _FEW_PROCESSES)):
        number = by_name.get(name, "")
        if number.isdigit() and int(number) < least:
            sound = False
            yield Finding("memory", "limits", "changes results", f"{name.lower()}: {number} (ulimit {option})",
                          "runs with many threads or files fail", f"ulimit {option} {4 * least}")  # fmt: skip
    if sound:
        yield Finding("memory", "limits", "fine", "no resource limit interferes")


def variables(view: View) -> Iterator[Finding]:
    """Environment variables and files that change allocators or loading."""
    from loam_lab.campaign.measure.instruments import without_allocator_settings

    _, dropped = without_allocator_settings(view.environment)
    kept = [name for name in _TELLING if name in view.environment and name not in dropped]
    if kept:
        yield Finding(
            "allocators", "variables", "changes results",
            "set in this shell: " + ", ".join(f"{name}={view.environment[name]}" for name in kept),
            "commands under loam bench inherit them (workloads of our own do not)", f"unset {' '.join(kept)}",
        )  # fmt: skip
    if dropped:
        yield Finding(
            "allocators", "variables", "fine", f"set in this shell: {', '.join(sorted(dropped))}",
            "every run starts without them, so it differs from one started by hand",
            "settings belong to --allocator NAME:KEY=VALUE",
        )  # fmt: skip
    if not kept and not dropped:
        yield Finding("allocators", "variables", "fine", "none that affects an allocator")
    preload = view.tree.read("/etc/ld.so.preload").split()
    if preload:
        yield Finding(
            "allocators", "ld.so.preload", "changes results", f"/etc/ld.so.preload loads {', '.join(preload)} into every process",
            "if it has malloc, it precedes the allocator under test, and the proof fails",
            "as root: empty that file for the campaign",
        )  # fmt: skip
    if view.tree.path("/etc/malloc.conf").is_symlink():
        yield Finding(
            "allocators", "malloc.conf", "changes results", "/etc/malloc.conf exists",
            "jemalloc reads its options from that link's target",
            "as root: rm /etc/malloc.conf, and give settings by name",
        )  # fmt: skip
