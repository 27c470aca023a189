"""Whether iterations settle: series with a known course, and how often noise alone is taken for one."""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from pathlib import Path

import pytest
from campaigns import STM, FakeInstruments, asking, measure, stated_times, study

from loam_lab.commands.bench import bench
from loam_lab.judging.statistics import warmup
from loam_lab.model.store import journal


def series(seed: int, *levels: tuple[int, float], noise: float = 0.01) -> list[float]:
    """(length, level) one after the other, with log-normal noise."""
    chance = random.Random(seed)
    return [level * math.exp(chance.gauss(0, noise)) for length, level in levels for _ in range(length)]


@pytest.mark.parametrize(
    ("levels", "kind", "steady_from"),
    [
        ([(40, 1.0)], "flat", 0),
        ([(8, 1.5), (32, 1.0)], "warm-up", 8),
        ([(4, 3.0), (6, 1.5), (30, 1.0)], "warm-up", 10),
        ([(30, 1.0), (30, 1.3)], "slow-down", 30),
        ([(20, 1.0), (20, 1.015)], "flat", 0),  # less than two percent is no start-up
        ([(10, 1.0), (10, 1.5), (20, 1.0)], "warm-up", 20),
        ([(20, 1.0), (20, 1.5), (20, 1.0), (4, 1.5)], "no steady state", None),
    ],
)
def test_the_course_of_known_series(levels: list[tuple[int, float]], kind: str, steady_from: int | None) -> None:
    for seed in range(20):
        course = warmup.course(series(seed, *levels))
        assert course is not None
        assert course.kind == kind
        assert (course.steady_from is None) == (steady_from is None)
        assert steady_from is None or abs((course.steady_from or 0) - steady_from) <= 1


def test_noise_alone_has_hardly_a_course() -> None:
    """BIC's penalty: false cuts are rare, whatever the noise, and do not grow with it."""
    for noise in (0.002, 0.02, 0.2):
        cut = sum(bool(warmup.changes([math.log(v) for v in series(s, (50, 1.0), noise=noise)])) for s in range(200))
        assert cut <= 12, f"{cut} of 200 level series with noise {noise} were cut"


def test_cuts_are_the_best_ones() -> None:
    """Against all partitions of a short series."""

    def price(values: list[float], cuts: tuple[int, ...]) -> float:
        bounds = [0, *cuts, len(values)]
        parts = [values[a:b] for a, b in itertools.pairwise(bounds)]
        spread = sum(sum((v - sum(p) / len(p)) ** 2 for v in p) for p in parts)
        return spread + len(cuts) * 3 * warmup._noise(values) ** 2 * math.log(len(values))

    def partitions(first: int, count: int) -> list[tuple[int, ...]]:
        return [()] + [(cut, *rest) for cut in range(first + 3, count - 2) for rest in partitions(cut, count)]

    for seed in range(30):
        values = [math.log(v) for v in series(seed, (5, 1.3), (4, 1.0), (5, 1.1), noise=0.03)]
        best = min(partitions(0, len(values)), key=lambda cuts: price(values, cuts))
        assert price(values, tuple(warmup.changes(values))) == pytest.approx(price(values, best))


def test_short_long_and_odd_series() -> None:
    assert warmup.course([1.0] * 9) is None
    level = warmup.course([1.0] * 50)
    assert level is not None
    assert level.kind == "flat"
    began = time.process_time()
    long = warmup.course(series(1, (20_000, 1.4), (80_000, 1.0)))
    # CPU time, not wall: the machine may be busy with other tests.
    assert time.process_time() - began < 5
    assert long is not None
    assert (long.kind, long.iterations) == ("warm-up", 100_000)
    assert 19_000 <= (long.steady_from or 0) <= 21_000


def test_one_outlier_is_no_level() -> None:
    for seed in range(20):
        values = series(seed, (40, 1.0))
        values[20] *= 2
        course = warmup.course(values)
        assert course is not None
        assert course.kind == "flat"


def test_a_cold_first_run_is_told_from_noise() -> None:
    assert warmup.cold([1.5, *series(1, (9, 1.0))])
    assert not warmup.cold([0.5, *series(1, (9, 1.0))])
    assert not warmup.cold([1.5, 1.0, 1.0])
    assert sum(warmup.cold(series(seed, (10, 1.0), noise=0.02)) for seed in range(500)) <= 10


def test_a_campaign_notes_the_course_and_warns(tmp_path: Path) -> None:
    """The made-up workload repeats its iteration on request; its second half is slower."""
    text = Path(STM).read_text()
    one = next(row for row in text.splitlines() if row.startswith('say "{\\"kind\\":\\"iteration'))
    slow = one.replace('\\"elapsed_s\\":0.1', '\\"elapsed_s\\":0.2')
    peer = tmp_path / "peer"
    peer.write_text(text.replace(one, "\n".join([one] * 12 + [slow] * 12)))
    peer.chmod(0o755)
    _, result = measure(study(sync=[str(peer)], blocks=6), tmp_path / "o")
    course = {"kind": "slow-down", "steady_from": 12, "iterations": 24}
    assert [line["course"] for line in journal.read(tmp_path / "o")] == [course] * 18
    assert all(warmup.ADVICE["slow-down"] in cell["warnings"] for cell in result["cells"])
    _, flat = measure(study(blocks=6), tmp_path / "p")
    assert "course" not in journal.read(tmp_path / "p")[0]
    assert not any("iterations" in warning for cell in flat["cells"] for warning in cell["warnings"])


def test_bench_tells_of_a_cold_first_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stated_times(monkeypatch)
    mark = tmp_path / "mark"
    # Twice for the runs that do not count, once for each copy's first that does.
    slow = f"echo x >> {mark}; [ $(wc -l < {mark}) -le 5 ] && s=35 || s=05; echo took 0.$s >&2"
    request = asking(allocators=["plain", "fast"], blocks=8, out=tmp_path / "o", report=False, as_json=True)
    status = bench.bench(["sh", "-c", slow], request, FakeInstruments())
    assert status == 0
    result = json.loads((tmp_path / "o" / "result.json").read_text())
    assert all(any("its first run was slower" in text for text in cell["warnings"]) for cell in result["cells"])
