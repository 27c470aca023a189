"""Facts about this machine, read from /proc and /sys, and the fingerprint that results carry.

The fingerprint covers what makes results comparable (processor model and number of hardware threads); kernel,
microcode and settings are annotation, shown beside the numbers but free to change.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from loam_lab.base.tree import Tree

# Starts 200 hardware transactions and prints how many committed. Run in a process of its own: where the processor
# lists RTM but the instruction is gone it ends by SIGILL. The bytes are
#   mov eax, -1; xbegin +4; xend; ret; ret     (returns -1 after a commit, the abort status otherwise)
_RTM_TRIAL = """
import ctypes, mmap
code = bytes.fromhex("b8ffffffffc7f8040000000f01d5c3c3")
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(code)
attempt = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
print(sum(attempt() == -1 for _ in range(200)))
"""


def read(path: str) -> str:
    """Text of a file of /proc or /sys without the last newline; "" where it is absent or not readable."""
    try:
        return Path(path).read_text(errors="replace").rstrip("\n")
    except OSError:
        return ""


@functools.cache
def cpuinfo() -> dict[str, str]:
    """First processor's entry of /proc/cpuinfo."""
    fields: dict[str, str] = {}
    for line in read("/proc/cpuinfo").split("\n\n")[0].splitlines():
        key, _, value = line.partition(":")
        fields[key.strip()] = value.strip()
    return fields


def cpu_model() -> str:
    """The processor's name, without repeated blanks and marketing marks."""
    name = cpuinfo().get("model name") or cpuinfo().get("Model") or platform.machine()
    return " ".join(re.sub(r"\((R|TM|tm)\)", "", name).split())


def hardware_threads() -> int:
    """Hardware threads this process may run on."""
    return len(os.sched_getaffinity(0))


def count(processors: str) -> int:
    """How many processors a list of the kernel names: 3 for "0-1,4"."""
    total = 0
    for part in filter(None, processors.split(",")):
        first, _, last = part.partition("-")
        total += int(last or first) - int(first) + 1
    return total


def memory_bytes() -> int:
    """Physical memory."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def selected(path: str) -> str:
    """The value in brackets of a /sys choice such as "always [madvise] never"; "" where there is none."""
    match = re.search(r"\[(\w+)\]", read(path))
    return match[1] if match else ""


def thp() -> str:
    """Transparent huge pages: "always", "madvise", "never", or "absent"."""
    return selected("/sys/kernel/mm/transparent_hugepage/enabled") or "absent"


def hypervisor() -> str:
    """What the machine is a guest of ("kvm", "xen", ...), "some" where it does not say, or "none"."""
    if read("/sys/hypervisor/type"):
        return read("/sys/hypervisor/type")
    if "hypervisor" not in cpuinfo().get("flags", "").split():
        return "none"
    vendor = read("/sys/class/dmi/id/sys_vendor") + read("/sys/class/dmi/id/product_name")
    for word, name in (
        ("QEMU", "kvm"),
        ("KVM", "kvm"),
        ("VMware", "vmware"),
        ("Microsoft", "hyper-v"),
        ("Amazon", "kvm"),
    ):
        if word in vendor:
            return name
    source = read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    return "kvm" if source == "kvm-clock" else "some"


@functools.cache
def rtm() -> str:
    """Hardware transactions: "works", "absent", or "listed but aborts" (every one of 200 trials, as after a microcode update)."""
    if "rtm" not in cpuinfo().get("flags", "").split():
        return "absent"
    trial = subprocess.run([sys.executable, "-I", "-S", "-c", _RTM_TRIAL], capture_output=True, text=True, check=False)
    committed = int(trial.stdout) if trial.returncode == 0 and trial.stdout.strip().isdigit() else 0
    return "works" if committed else "listed but aborts"


def identity() -> str:
    """What makes two machines the same for results: processor model and number of hardware threads, hashed (16 hex)."""
    return hashlib.sha256(f"{cpu_model()}\0{os.cpu_count()}".encode()).hexdigest()[:16]


def settings(tree: Tree) -> dict[str, str]:
    """Settings beside those that fingerprint() names one by one, as results record them; "" where the machine has none.

    returns: thp_defrag, turbo ("on", "off"), clock, swap (its areas, or "none"), damon (actions of running kdamonds, or
             "off"), numa_balancing, overcommit, mitigations (names, or "off")
    """
    cpu, damon = "/sys/devices/system/cpu", "/sys/kernel/mm/damon/admin/kdamonds"
    no_turbo, boost = tree.number(f"{cpu}/intel_pstate/no_turbo"), tree.number(f"{cpu}/cpufreq/boost")
    turbo = "" if no_turbo is None and boost is None else "on" if no_turbo == 0 or boost == 1 else "off"
    running = [name for name in tree.glob(f"{damon}/[0-9]*") if tree.value(f"{name}/state") == "on"]
    actions = {tree.value(file) for name in running for file in tree.glob(f"{name}/contexts/*/schemes/*/action")}
    holes = tree.glob(f"{cpu}/vulnerabilities/*")
    mitigated = [name.rpartition("/")[2] for name in holes if tree.read(name).startswith("Mitigation")]
    return {
        "thp_defrag": tree.value("/sys/kernel/mm/transparent_hugepage/defrag"),
        "turbo": turbo,
        "clock": tree.value("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "swap": ", ".join(line.split()[0] for line in tree.read("/proc/swaps").splitlines()[1:] if line.strip())
        or "none",
        "damon": ", ".join(sorted(actions)) or ("on" if running else "off"),
        "numa_balancing": tree.value("/proc/sys/kernel/numa_balancing"),
        "overcommit": tree.value("/proc/sys/vm/overcommit_memory"),
        "mitigations": "off" if "mitigations=off" in tree.read("/proc/cmdline").split() else ", ".join(mitigated),
    }


@functools.cache
def fingerprint() -> dict[str, Any]:
    """The machine as results record it.

    returns: cpu, cores (hardware threads usable here), memory_bytes, kernel, microcode, thp, aslr, rtm, hypervisor,
             governor ("" where none), libc, fingerprint (16 hex, see identity), and what settings() returns
    """
    return {
        "cpu": cpu_model(),
        "cores": hardware_threads(),
        "memory_bytes": memory_bytes(),
        "kernel": platform.release(),
        "microcode": cpuinfo().get("microcode", ""),
        "thp": thp(),
        "aslr": int(read("/proc/sys/kernel/randomize_va_space") or 0),
        "rtm": rtm(),
        "hypervisor": hypervisor(),
        "governor": read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "libc": " ".join(platform.libc_ver()),
        "fingerprint": identity(),
        **settings(Tree()),
    }
