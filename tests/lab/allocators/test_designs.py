"""The allocators `pool` and `design:...`: names, presets, messages, and the abort that provides a pool."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from loam_lab.base import paths
from loam_lab.base.errors import LoamError
from loam_lab.cli import main, options
from loam_lab.setup import build
from loam_lab.subjects.allocators import building, registry, settings_check


def test_each_preset_is_one_file_that_says_what_it_stands_for() -> None:
    of = ("design", "pool")
    files = {f"{name}:{file.stem}" for name in of for file in (paths.root() / "allocators" / name).glob("*.toml")}
    known = registry.definitions()
    assert files == {name for name in known if name.startswith(tuple(f"{one}:" for one in of))}
    assert len(files) >= 12 and {"pool:local", "pool:direct"} <= files
    assert all("stands for" in known[name].summary for name in files)


def test_settings_are_the_factors_of_the_code() -> None:
    text = (paths.root() / "runtime/heap/design/factors.hpp").read_text()
    assert set(re.findall(r'^    \{"([a-z-]+)", &Factors::', text, re.M)) == set(
        registry.definitions()["design"].settings
    )


def test_the_defaults_of_the_settings_are_those_of_the_code() -> None:
    text = (paths.root() / "runtime/heap/design/factors.hpp").read_text()
    members = text.partition("struct Factors {")[2].partition("bool is(")[0]
    numbers = {name: int(value) for name, value in re.findall(r"(\w+) = (\d+)", members)}
    rows = re.findall(r'\{"([a-z-]+)", &Factors::(\w+), \{([^}]*)\}', text)
    defaults = {}
    for name, member, values in rows:
        choices = re.findall(r'"([^"]+)"', values)
        defaults[name] = choices[numbers[member]] if choices else str(numbers[member])
    assert len(defaults) == 21
    settings = registry.definitions()["design"].settings
    assert defaults == {name: setting.default for name, setting in settings.items()}
    assert registry.values("design:base") == defaults
    assert registry.values("design:hoard:cache=3") == {
        **defaults,
        **registry.definitions()["design:hoard"].preset,
        "cache": "3",
    }


def test_a_comma_and_a_colon_separate_settings() -> None:
    assert options.allocator_names(["glibc,design:base,cache=0,return-to=owner,design:tbb", "pool"]) == [
        "glibc", "design:base:cache=0:return-to=owner", "design:tbb", "pool",
    ]  # fmt: skip
    assert registry.split("design:hoard:cache=0") == ("design:hoard", {"cache": "0"})
    assert registry.split("pool:local:small=256") == ("pool:local", {"small": "256"})
    assert registry.split("glibc:tcache=0") == ("glibc", {"tcache": "0"})


@pytest.mark.parametrize(
    ("name", "near"),
    [("design:hord", "hoard"), ("design:base:chace=0", "cache"), ("design:base:guard=locks", "lock")],
)
def test_an_unknown_name_is_answered_with_the_nearest(name: str, near: str) -> None:
    with pytest.raises(LoamError) as error:
        registry.load(name)
    assert near in error.value.line()


def library(name: str) -> Path:
    building.ensure_own([name])
    return Path(paths.load_paths("release")["libraries"][name])


@pytest.mark.parametrize(
    ("factors", "message"),
    [
        ("guard=atomic,heaps=one", "heaps=thread"),
        ("slab=0", "metadata=block"),
        ("slab=5000", "a power of two"),
        ("chace=1", "did you mean cache?"),
        ("guard=locks", "there are lock atomic"),
        ("cache=many", "an integer from 0"),
    ],
)
def test_parts_that_do_not_fit_end_the_program_with_what_would(factors: str, message: str) -> None:
    environment = {**os.environ, "LD_PRELOAD": str(library("design")), "LOAM_DESIGN": factors}
    done = subprocess.run(["/bin/ls", "/dev/null"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and message in done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("design:base:guard=atomic:heaps=one", "heaps=thread"),
        ("design:base:slab=0", "slab=0 needs a class in front of each block: metadata=block"),
        ("design:ptmalloc:emptiness=12", "emptiness=0"),
        ("design:hoard:slab=4096:header=2048", "header must be at most a quarter of the slab"),
        ("pool:limit=65536", "is less than two pools of LOAM_POOL_BYTES=1048576; raise it, or lower the other"),
        ("pool:bytes=1099511627776", "is less than two pools"),
        (
            "pool:steal=1:private=0",
            "there are no pools to steal from with LOAM_POOL_PRIVATE=0; leave out one of the two",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused_before_anything_is_measured(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, message: str
) -> None:
    building.ensure_own([name])
    assert message in settings_check.misfit(name)
    assert main.run(["run", "threadtest", "--allocator", name, "--out", str(tmp_path / "out")]) == 2
    captured = capsys.readouterr()
    assert f"--allocator={name}: " in captured.err and message in captured.err and not (tmp_path / "out").exists()


def test_a_pool_below_the_smallest_block_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["run", "threadtest", "--allocator", "pool:bytes=8"]) == 2
    assert "--allocator pool:bytes=8: must be an integer from 16" in capsys.readouterr().err


def test_what_needs_transactions_is_not_asked_for_a_machine_that_has_them() -> None:
    names = [
        "design:base:guard=transaction",
        "pool:guard=transaction",
        "design:base:cache=0",
        "design:hoard",
        "glibc:tcache=0",
    ]
    assert [settings_check.needs_transactions(name) for name in names] == [True, True, False, False, False]
    assert settings_check.combined([*names, "nobody:x=1"]) == names[:3]
    building.ensure_own(names)
    settings_check.check(settings_check.combined(names), simulated=True)
    assert settings_check.misfit("design:base:cache=0") == "" == settings_check.misfit("design:hoard")


def vacation(variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    build.ensure_built(["etl-wb"])
    program = paths.load_paths("release")["executables"]["etl-wb"]["argv"][0]
    return subprocess.run(
        [program, "vacation", "--threads", "2", "--seed", "1", "-p", "size=small", "-p", "tasks=4096"],
        env={**os.environ, "LD_PRELOAD": str(library("pool")), **variables},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


def test_a_transaction_that_finds_its_pool_empty_aborts_and_is_provided_for() -> None:
    small = vacation({"LOAM_POOL_SMALL_BYTES": "256", "LOAM_POOL_BYTES": "16777216"})
    records = [json.loads(line) for line in small.stdout.splitlines()]
    counts = next(record for record in records if record["kind"] == "iteration")["tm"]
    assert records[-1]["verified"] and 1 <= counts["aborts_reprovision"] <= 12
    large = vacation({"LOAM_POOL_BYTES": "16777216"})
    records = [json.loads(line) for line in large.stdout.splitlines()]
    counts = next(record for record in records if record["kind"] == "iteration")["tm"]
    assert records[-1]["verified"] and counts["aborts_reprovision"] == 0


def test_a_limit_below_two_pools_is_refused() -> None:
    done = vacation({"LOAM_POOL_LIMIT_BYTES": "65536"})
    assert done.returncode != 0 and "less than two pools" in done.stderr
