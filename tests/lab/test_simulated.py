"""The files of machines/: each is possible, says where its numbers come from, and is what the simulator accepts."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.setup import build
from loam_lab.subjects import machine_keys, machines, simulated

PARSER = paths.root() / "simulator" / "model" / "machine.cpp"
LEAST = """title = "one"
cores = 4
l1 = { bytes = 4096, ways = 4, cycles = 3 }
memory.cycles = [200]
"""
SOURCES = '[sources]\ncores = "paper"\nl1 = "assumed"\nmemory = "manual"\n'


def read(text: str) -> simulated.Simulated:
    return simulated.read(Path("one.toml"), text, tomllib.loads(text))


def test_every_machine_is_possible_and_says_where_its_numbers_come_from() -> None:
    machines = simulated.registry()
    assert {"xeon-e5405", "opteron-6164he", "many-128"} <= machines.keys()
    for machine in machines.values():
        assert machine.sources.keys() == machine.values.keys()
        assert machine.number("cores") > 0


def test_a_machine_is_rendered_as_lines() -> None:
    machine = read(LEAST + SOURCES)
    assert machine.text().splitlines() == [
        "name=one", "cores=4", "l1.bytes=4096", "l1.ways=4", "l1.cycles=3", "memory.cycles=200",
    ]  # fmt: skip
    assert machine.assumed() == ["l1.bytes", "l1.ways", "l1.cycles"]


def test_tables_dots_lists_and_decimals_are_the_same_to_the_simulator() -> None:
    more = "nodes = 2\nnode.distances = [[0, 2], [2, 0]]\n[link]\nbytes_per_cycle = 7.5\n"
    more += '[sources]\nnode = "x"\nlink = "x"\nnodes = "x"\n'
    values = read(LEAST + more + SOURCES.removeprefix("[sources]\n")).values
    assert values["node.distances"] == "0,2,2,0"
    assert values["link.bytes_per_cycle"] == "7.5"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cores = 4\n", "machine=one.toml:1: title: a line of text that says what the machine is, is missing"),
        (LEAST.replace("4\n", "200\n"), "machine=one.toml:2: cores = 200: a whole number from 1 to 128 is allowed"),
        (LEAST.replace("ways = 4", "ways = 5"), "machine=one.toml:3: l1.bytes = 4096: a multiple of line.bytes x l1.ways = 320"
         " is allowed"),
        (LEAST.replace("4096", "3072"), "machine=one.toml:3: l1.bytes = 3072: line.bytes x l1.ways x a power of two is"
         " allowed; this makes 12 sets"),
        (LEAST.replace("l1 =", "l4 ="), "machine=one.toml:3: l4.bytes: there is no such key (did you mean l3.bytes?)"),
        (LEAST + "nodes = 3\n", "machine=one.toml:5: nodes = 3: a divisor of cores = 4 is allowed"),
        (LEAST + "line.bytes = 48\n", "machine=one.toml:5: line.bytes = 48: a power of two is allowed"),
        (LEAST + "memory.bytes_per_cycle = 1.2345\n", "machine=one.toml:5: memory.bytes_per_cycle = 1.2345: a number from 0 to"
         " 4096 with at most three decimals is allowed"),
        (LEAST + "l2 = { bytes = 8192, ways = 4, cycles = 9, shared_by = 3 }\n",
         "machine=one.toml:5: l2.shared_by = 3: a divisor of the 4 cores of a node is allowed"),
        (LEAST + "l2 = { bytes = 8192, ways = 4 }\n",
         "machine=one.toml:5: l2.cycles: at least 1 is allowed where the cache is there"),
        (LEAST + "tlb = { entries = 48, ways = 4 }\n",
         "machine=one.toml:5: tlb.entries = 48: tlb.ways = 4 times a power of two, or 0, is allowed"),
        (LEAST + 'coherence = "moesi"\n', "machine=one.toml:5: coherence = moesi: allowed are none, mesi"),
        (LEAST + 'transactions.reads = "l2"\n', "machine=one.toml:5: transactions.reads = l2: l1 or unlimited is allowed where"
         " there is no l2"),
        (LEAST + 'coherence = "none"\ntransactions.policy = "requester-wins"\n',
         "machine=one.toml:6: transactions.policy = requester-wins: only none is allowed where coherence = none"),
        (LEAST + "nodes = 2\nnode.distances = [[0, 1], [2, 0]]\n", "machine=one.toml:6: node.distances = 0,1,2,0: from 0 to 1 it"
         " says 1; 0 to itself, 1 to 4 to another, and the same back are allowed"),
        (LEAST + "nodes = 2\nnode.distances = [0, 1]\n",
         "machine=one.toml:6: node.distances = 0,1: 2 rows of 2 numbers are allowed"),
        (LEAST.replace("memory.cycles = [200]\n", ""), "machine=one.toml:1: memory.cycles: this key is missing"),
        (LEAST + SOURCES.replace("memory", "memory.cycles").replace('cores = "paper"\n', ""),
         'machine=one.toml:2: cores = 4: its source is missing (add "cores" to [sources]; one that begins with'
         ' "assumed" marks a guess)'),
        (LEAST + SOURCES + 'l3 = "x"\n', "machine=one.toml:9: sources: no key begins with l3"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_file_line_key_value_and_what_is_allowed(text: str, message: str) -> None:
    with pytest.raises(LoamError) as caught:
        read(text)
    assert caught.value.line() == message


def test_a_file_that_is_no_toml_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.toml").write_text("cores = four\n")
    monkeypatch.setattr(simulated, "folder", lambda: tmp_path)
    with pytest.raises(LoamError, match=r"broken.toml:1:9: is not TOML"):
        simulated.registry()


def test_the_simulator_and_the_lab_know_the_same_keys_and_ranges() -> None:
    text = PARSER.read_text().replace("std::uint64_t{1} << ", "1 << ").replace("'", "")
    names = {"kCoresMax": "128", "kNodesMax": "16", "kCyclesMax": str(machine_keys.CYCLES_MAX)}
    ranges = {}
    for key, least, most in re.findall(r'LOAM_NUMBER\("([\w.]+)",\s*(\d+),\s*([^,]+),', text):
        words = names.get(most.strip(), most).split(" << ")
        ranges[key] = (int(least), int(words[0]) << int(words[1]) if len(words) == 2 else int(words[0]))
    assert ranges == machine_keys.NUMBERS
    assert dict(re.findall(r'\{"([\w.]+)", (\d+), &Machine', text)) == {
        key: str(most) for key, most in machine_keys.DECIMALS.items()
    }
    choices: dict[str, tuple[str, ...]] = {}
    for key, word in re.findall(r'\{"([\w.]+)", "([\w-]+)", \[\]', text):
        choices[key] = (*choices.get(key, ()), word)
    assert choices == machine_keys.CHOICES
    assert set(re.findall(r'key == "([\w.]+)"\) return times', text)) == machine_keys.TIMES.keys()


def test_this_host_as_found_has_its_cores_and_caches() -> None:
    caches = (
        machines.Cache(1, "data", 49152, 12, 64, 1), machines.Cache(1, "instruction", 32768, 8, 64, 1),
        machines.Cache(2, "unified", 2 << 20, 16, 64, 2), machines.Cache(3, "unified", 260 << 20, 20, 64, 4),
    )  # fmt: skip
    machine = machines.as_found(machines.Machine("host", 4, dict, caches))
    assert (machine.name, machine.number("cores"), machine.number("l1.bytes"), machine.number("l1.ways")) == (
        "host",
        4,
        49152,
        12,
    )
    assert (machine.number("l2.bytes"), machine.number("l2.shared_by")) == (2 << 20, 2)
    # 212 992 sets become 131 072.
    assert machine.number("l3.bytes") == 131_072 * 20 * 64
    assert machine.assumed() and "the kernel" in machine.sources["l1.bytes"]
    assert machines.find("sim:host").simulated


@pytest.mark.slow
def test_the_simulator_accepts_every_machine(tmp_path: Path) -> None:
    build.ensure_targets("release", ["loam-simulator-speed"], label="the model of the simulated multicore")
    for machine in (*simulated.registry().values(), machines.as_found(machines.host())):
        file = tmp_path / machine.name
        file.write_text(machine.text())
        done = subprocess.run(
            [paths.root() / "build/release/loam-simulator-speed", file, "0"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith(f"{machine.name}: {machine.number('cores')} cores")
