"""Tables of what an allocator's calls execute: counted, fitted, read, and charged on a simulated machine."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.campaign.counters import call_costs
from loam_lab.subjects import machines, simulated
from loam_lab.subjects.allocators import costs, registry
from loam_lab.subjects.allocators.costs import Executed

ROW = """version = "1.0"
sha256 = "ab"
[size.16]
stock = 7
malloc = [40, 16, 0]
free = [87, 41, 0]
malloc_miss = [85, 32.5, 1.25]
free_miss = [117, 46, 1]
remote_free = [117, 46, 1]
"""
SOURCES = '[sources]\ncores = "x"\nl1 = "x"\nmemory = "x"\natomic = "x"\ncore = "x"\n'


def table(text: str = ROW) -> costs.Table:
    return costs.read(Path("one.toml"), text, tomllib.loads(text))


def machine(core: str) -> simulated.Simulated:
    text = f"""title = "one"
cores = 1
l1 = {{ bytes = 4096, ways = 4, cycles = 3 }}
memory.cycles = [200]
atomic.cycles = 20
core = {{ {core} }}
{SOURCES}"""
    return simulated.read(Path("one.toml"), text, tomllib.loads(text))


def test_a_call_costs_what_the_machine_charges_the_programs_own_accesses() -> None:
    call = Executed(85, 32.5, 1.25)
    assert call.cycles(machine("access_cycles = 2")) == round(32.5 * 5 + 1.25 * 20)
    blocks = machine('costs = "blocks", instruction_cycles = 0.4')
    assert call.cycles(blocks) == round(32.5 * 3 + (85 - 32.5) * 0.4 + 1.25 * 20)


def test_the_simulator_reads_one_row_for_each_size() -> None:
    assert table().text(machine("access_cycles = 0")) == "one 1.0;16=7,48,123,122,158,158"


def means(hit: float, miss: float, stock: int) -> dict[tuple[int, str, int], Executed]:
    """Of an allocator that keeps so many blocks; each call costs as much more as its miss says."""
    by_call: dict[tuple[int, str, int], Executed] = {}
    for burst in (1, 2, 4, 8, 16, 32, 64, 2048):
        hits = min(burst, stock)
        mean = (hits * hit + (burst - hits) * miss) / burst
        by_call[16, "malloc", burst] = by_call[16, "free", burst] = Executed(mean, mean / 2, 0)
    by_call[16, "remote", 256] = Executed(500, 100, 2)
    return by_call


@pytest.mark.parametrize("stock", [1, 2, 3, 7, 20, 50])
def test_the_stock_follows_from_the_first_burst_that_differs(stock: int) -> None:
    [row] = call_costs.sizes(means(40, 85, stock))
    assert row.stock == pytest.approx(stock, abs=1)
    assert row.calls["malloc"].instructions == 40
    assert row.calls["malloc_miss"].instructions == pytest.approx(85, rel=0.03)
    assert row.calls["remote_free"].locked == 2


def test_an_allocator_that_never_misses_keeps_all_that_was_tried() -> None:
    [row] = call_costs.sizes(means(31, 31, 5))
    assert row.stock == 2048


def test_a_stock_that_only_the_longest_burst_exceeds_is_at_least_the_burst_before() -> None:
    [row] = call_costs.sizes(means(31, 310, 1024))
    assert row.stock == 64


def test_what_the_loop_costs_is_not_counted() -> None:
    stretches = {
        "0;malloc;4;2000": {"Ir": 20000, "Dr": 2000, "Dw": 2000},
        "16;malloc;4;2000": {"Ir": 100000, "Dr": 12000, "Dw": 8000, "Ge": 500},
    }
    assert call_costs.counted(stretches) == {(16, "malloc", 4): Executed(41, 9, 0.25)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ROW.replace("stock = 7\n", ""), "one.toml:3: size.16: stock: a number of blocks is missing"),
        (
            ROW.replace("[87, 41, 0]", "[87, 41]"),
            "one.toml:6: size.16: free: [instructions, accesses, locked accesses]",
        ),
        (ROW.replace("[size.16]", "[size.big]"), "one.toml:3: size.big: a size in bytes is allowed"),
        ('version = "1"\n', "one.toml:1: size: no size has costs"),
    ],
)
def test_a_mistake_is_told_with_file_and_line(text: str, message: str) -> None:
    with pytest.raises(LoamError) as caught:
        table(text)
    assert message in caught.value.line()


def test_a_table_holds_for_the_version_or_the_file_that_was_counted(tmp_path: Path) -> None:
    libc = registry.load("glibc")
    allocator = replace(libc, source=str(tmp_path / "glibc.toml"), version="1.0", sha256="cd")
    assert costs.find(allocator) is None
    (tmp_path / costs.FOLDER).mkdir()
    (tmp_path / costs.FOLDER / "glibc.toml").write_text(ROW)
    assert costs.find(allocator) is not None
    assert costs.find(replace(allocator, version="1.1")) is None
    assert costs.find(replace(allocator, version="1.1", sha256="ab")) is not None
    assert costs.find(replace(allocator, name="glibc:tcache=0")) is None


def test_a_machine_that_exists_is_told_nothing() -> None:
    assert costs.environment(registry.load("glibc"), machines.find("host").description) == {}


def test_the_tables_of_the_tree_are_of_its_allocators() -> None:
    files = list((paths.root() / "allocators" / costs.FOLDER).glob("*.toml"))
    assert files
    for file in files:
        text = file.read_text()
        read = costs.read(file, text, tomllib.loads(text))
        assert registry.split(read.name)[0] in registry.definitions()
        assert [size.size for size in read.sizes] == list(call_costs.SIZES)
        for size in read.sizes:
            assert 1 <= size.calls["malloc"].accesses <= size.calls["malloc"].instructions
        assert read.toml() == text
