"""How the kernel treats memory behind a program's back: huge pages, reclaim, overcommit, migration, layout."""

from __future__ import annotations

from collections.abc import Iterator

from loam_lab.commands.doctor.finding import Finding, View, plural

_THP = "/sys/kernel/mm/transparent_hugepage"
_DAMON = "/sys/kernel/mm/damon/admin/kdamonds"
# Bits of /proc/self/personality that a shell hands down to what it starts.
_NO_RANDOMIZE, _LEGACY_LAYOUT = 0x0040000, 0x0200000


def huge_pages(view: View) -> Iterator[Finding]:
    """Transparent huge pages: who gets them, when, and whether a daemon makes them later."""
    tree = view.tree
    if not tree.exists(f"{_THP}/enabled"):
        yield Finding("memory", "huge pages", "fine", "absent")
        return
    enabled, defrag = tree.value(f"{_THP}/enabled"), tree.value(f"{_THP}/defrag")
    late = tree.number(f"{_THP}/khugepaged/defrag") == 1 and enabled != "never"
    fact = f"transparent huge pages: {enabled}; defrag: {defrag or 'unknown'}; khugepaged: {'on' if late else 'off'}"
    if enabled == "always":
        yield Finding(
            "memory", "huge pages", "changes results", fact, "peak memory and faults depend on alignment and luck",
            "as root: ./loam tune --apply --only thp",
        )  # fmt: skip
    elif defrag == "always":
        yield Finding(
            "memory", "huge pages", "costs precision", fact, "a page fault may stop to compact memory, for milliseconds",
            "as root: ./loam tune --apply --only thp-defrag",
        )  # fmt: skip
    else:
        note = "allocators that ask for huge pages get them, others do not" if enabled == "madvise" else ""
        yield Finding("memory", "huge pages", "fine", fact, note)


def swap(view: View) -> Iterator[Finding]:
    """Whether anonymous memory can leave main memory."""
    tree = view.tree
    areas = [line.split() for line in tree.read("/proc/swaps").splitlines()[1:] if line.strip()]
    zswap = tree.read("/sys/module/zswap/parameters/enabled").strip() == "Y"
    if not areas:
        yield Finding("memory", "swap", "fine", "none: anonymous memory stays where it is")
        return
    named = ", ".join(f"{area[0]} ({'compressed memory' if 'zram' in area[0] else area[1]})" for area in areas)
    yield Finding(
        "memory", "swap", "changes results",
        f"{named}{', behind zswap' if zswap else ''}; swappiness {tree.number('/proc/sys/vm/swappiness')}",
        "resident memory may shrink without the program freeing any: memory figures are unfit for a verdict",
        "as root: swapoff -a for the time of the campaign",
    )  # fmt: skip


def _kept_anonymous(view: View, scheme: str) -> bool:
    """Whether a scheme's filters keep it away from anonymous memory."""
    for kind in ("filters", "core_filters", "ops_filters"):
        for name in view.tree.glob(f"{scheme}/{kind}/[0-9]*"):
            matching = view.tree.read(f"{name}/matching").strip() == "Y"
            allowed = view.tree.read(f"{name}/allow").strip() == "Y"
            if view.tree.read(f"{name}/type").strip() == "anon" and matching and not allowed:
                return True
    return False


def damon(view: View) -> Iterator[Finding]:
    """The kernel's access monitor, which can page out what a program has not touched for a while."""
    tree = view.tree
    modules = [
        name for name in ("damon_reclaim", "damon_lru_sort")
        if tree.read(f"/sys/module/{name}/parameters/enabled").strip() == "Y"
    ]  # fmt: skip
    actions: dict[str, bool] = {}  # action: whether it spares anonymous memory everywhere
    running = [name for name in tree.glob(f"{_DAMON}/[0-9]*") if tree.read(f"{name}/state").strip() == "on"]
    for daemon in running:
        for scheme in tree.glob(f"{daemon}/contexts/[0-9]*/schemes/[0-9]*"):
            action = tree.read(f"{scheme}/action").strip()
            actions[action] = actions.get(action, True) and _kept_anonymous(view, scheme)
    step = "as root: ./loam tune --apply --only damon"
    if modules or "pageout" in actions:
        spared = not modules and actions["pageout"]
        who = ", ".join(modules) if modules else "kdamond with action pageout"
        if spared:
            yield Finding(
                "memory", "DAMON", "costs precision", f"{who}; its filters spare anonymous memory",
                "idle program text and mapped files are paged out: they come back as major faults in the next run", step,
            )  # fmt: skip
        else:
            yield Finding(
                "memory", "DAMON", "changes results", f"{who}, anonymous memory too",
                "idle heap pages disappear, lazily freed ones (MADV_FREE) first: memory and faults are not due to the allocator",
                step,
            )  # fmt: skip
    elif running:
        listed = ", ".join(sorted(actions)) or "no action"
        yield Finding(
            "memory", "DAMON", "costs precision", f"{plural(len(running), 'kdamond')} running: {listed}",
            "sampling clears access bits of pages: some TLB misses more", step,
        )  # fmt: skip
    else:
        yield Finding("memory", "DAMON", "fine", "off" if tree.exists(_DAMON) else "absent")


def overcommit(view: View) -> Iterator[Finding]:
    """Whether address space may be reserved freely, and how many mappings there may be."""
    mode, maps = view.tree.number("/proc/sys/vm/overcommit_memory"), view.tree.number("/proc/sys/vm/max_map_count")
    if mode == 2:
        yield Finding(
            "memory", "overcommit", "changes results", "2: address space counts as memory",
            "allocators that reserve gigabytes fail or fall back to smaller arenas", "as root: sysctl vm.overcommit_memory=0",
        )  # fmt: skip
    elif maps is not None and maps < 65_530:
        yield Finding(
            "memory", "overcommit", "changes results", f"{mode}; at most {maps} mappings",
            "allocators that map many small areas run out of them", "as root: sysctl vm.max_map_count=65530",
        )  # fmt: skip
    else:
        yield Finding("memory", "overcommit", "fine", f"{mode}; at most {maps} mappings")


def nodes(view: View) -> Iterator[Finding]:
    """Memory nodes, and whether the kernel moves pages between them."""
    tree = view.tree
    count = len(tree.glob("/sys/devices/system/node/node[0-9]*"))
    balancing = tree.number("/proc/sys/kernel/numa_balancing")
    demotion = tree.read("/sys/kernel/mm/numa/demotion_enabled").strip() == "true"
    fact = f"{plural(max(count, 1), 'node')}; automatic balancing {'on' if balancing else 'off'}"
    if balancing and count > 1:
        yield Finding(
            "memory", "memory nodes", "changes results", fact,
            "pages are unmapped and moved while runs are timed: faults that no allocator caused",
            "as root: ./loam tune --apply --only numa-balancing",
        )  # fmt: skip
    elif demotion and count > 1:
        yield Finding(
            "memory", "memory nodes", "changes results", f"{fact}; demotion to slower nodes on",
            "idle heap pages move to slower memory",
            "as root: echo false > /sys/kernel/mm/numa/demotion_enabled",
        )  # fmt: skip
    elif count > 1:
        yield Finding(
            "memory", "memory nodes", "fine", fact, "where a page lies depends on the thread that touched it first",
            "numactl --cpunodebind=0 --membind=0 ./loam ... keeps runs on one node",
        )  # fmt: skip
    else:
        yield Finding("memory", "memory nodes", "fine", fact)


def merging(view: View) -> Iterator[Finding]:
    """Kernel same-page merging."""
    if view.tree.number("/sys/kernel/mm/ksm/run") == 1:
        yield Finding(
            "memory", "page merging", "costs precision", "KSM runs",
            "its daemon takes processor time; merged pages fault when written",
            "as root: echo 0 > /sys/kernel/mm/ksm/run",
        )  # fmt: skip


def available(view: View) -> Iterator[Finding]:
    """Free memory, and the limit of the control group."""
    sizes = {}
    for line in view.tree.read("/proc/meminfo").splitlines():
        name, _, rest = line.partition(":")
        if rest.split() and rest.split()[0].isdigit():
            sizes[name] = int(rest.split()[0]) * 1024
    total, free = sizes.get("MemTotal", 0), sizes.get("MemAvailable", 0)
    limits = [number for name in view.groups("memory", "memory.max") if (number := view.tree.number(name))]
    limits += [number for name in view.groups("memory", "memory.limit_in_bytes") if (number := view.tree.number(name))]
    limit = min(limits, default=total)
    if limit < total:
        yield Finding(
            "memory", "memory limit", "changes results",
            f"this control group may use {limit / 2**30:.1f} of {total / 2**30:.1f} GiB",
            "near it, memory is reclaimed inside the run and programs are killed",
            "raise the limit of the container, or use smaller sizes",
        )  # fmt: skip
    if total and free < total / 10:
        yield Finding(
            "memory", "free memory", "costs precision", f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB",
            "page faults wait for reclaim", "end what holds memory",
        )  # fmt: skip
    elif total:
        yield Finding("memory", "free memory", "fine", f"{free / 2**30:.1f} of {total / 2**30:.1f} GiB")


def layout(view: View) -> Iterator[Finding]:
    """Address-space randomisation, system-wide and in this shell."""
    aslr = view.tree.read("/proc/sys/kernel/randomize_va_space").strip()
    try:
        personality = int(view.tree.read("/proc/self/personality") or "0", 16)
    except ValueError:
        personality = 0
    if aslr != "2":
        yield Finding(
            "memory", "ASLR", "changes results", aslr or "unknown", "runs share one layout: its luck becomes a result",
            "as root: ./loam tune --apply --only aslr",
        )  # fmt: skip
    elif personality & _NO_RANDOMIZE:
        yield Finding(
            "memory", "ASLR", "changes results", "switched off in this shell (setarch -R, or a debugger)",
            "runs share one layout: its luck becomes a result", "start from another shell",
        )  # fmt: skip
    else:
        yield Finding("memory", "ASLR", "fine", "2: every run gets its own layout, as blocks assume")
    if personality & _LEGACY_LAYOUT:
        yield Finding(
            "memory", "layout", "changes results", "this shell asks for the legacy layout (setarch -L)",
            "mappings grow upwards from the middle: other alignments than on any normal machine", "start from another shell",
        )  # fmt: skip
