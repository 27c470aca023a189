"""docs/performance/malloc-services.md: what each allocator does in a service that runs for long.

    ./loam page malloc-services [--allocator NAME,...] [--operations N] [--mib N] [--threads N] [--day SECONDS] [--jobs N]
                                [--page FILE]

Runs lab/probe/service under each allocator: sizes that drift, idle time, threads that end, and a day of a server.  Memory is
what the page is about, so that several processes run at a time.  loam has a second row, with the helper thread that
LOAM_MALLOC_BACKGROUND=1 starts.
"""

from __future__ import annotations

import datetime
import statistics
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from loam_lab.base import console, subcommands
from loam_lab.base.errors import LoamError
from loam_lab.presenting.pages import malloc_idle
from loam_lab.presenting.pages.malloc_idle import HELPED, OURS
from loam_lab.presenting.pages.parts import opening, writing
from loam_lab.presenting.report import rounding, svg
from loam_lab.presenting.report.frame import Axis, Frame, span
from loam_lab.presenting.report.palette import MUTED, THREADS
from loam_lab.setup import build
from loam_lab.subjects import machines

OPERATIONS, MIB, ENDED, DAY_S, RATE = 500_000, 1024, 100_000, 600, 4000
JOBS = 2
SEED = 1
LIVE = "live blocks"
# The rows that the picture has, as far as they were measured; the tables have all.
DRAWN = (OURS, "glibc", "jemalloc", "tcmalloc", "mimalloc-3.6", "snmalloc", "rpmalloc", HELPED)
_MIB = 1 << 20
_LEAST_LIVE = 8 << 20
# Smaller differences count as none.
_EVEN = 0.005


@dataclass(frozen=True)
class Sample:
    """A moment of a run. kind: "tick", or as the scenario names it (scenarios.hpp); live, resident: bytes"""

    kind: str
    seconds: float
    live: int
    resident: int


@dataclass(frozen=True)
class Course:
    """What one scenario came to under one allocator. processor_s: time of all threads, kernel included"""

    samples: tuple[Sample, ...]
    processor_s: float

    def of(self, kind: str) -> list[Sample]:
        """The samples of one kind."""
        return [one for one in self.samples if one.kind == kind]

    def peak(self) -> float:
        """The most resident MiB."""
        return max(one.resident for one in self.samples) / _MIB

    def over_live(self, kind: str) -> float:
        """Mean of resident over live bytes; moments with little that is live say nothing about blocks.

        raises: LoamError if little was live at every moment
        """
        ratios = [one.resident / one.live for one in self.of(kind) if one.live >= _LEAST_LIVE]
        if not ratios:
            raise LoamError(
                "malloc-services", None, f"the process never held {_LEAST_LIVE >> 20} MiB at a {kind}",
                "give more --operations, or a longer --day",
            )  # fmt: skip
        return statistics.fmean(ratios)

    def last(self, kind: str) -> float:
        """Resident MiB at the last sample of a kind."""
        return self.of(kind)[-1].resident / _MIB


# By scenario, by row.
Courses = dict[str, dict[str, Course]]


def read(text: str) -> Course:
    """What the program printed; raises: ValueError if it is cut."""
    *lines, cost = [line.split() for line in text.splitlines()] or [[]]
    if not lines or not cost or cost[0] != "cost":
        raise ValueError("the program ended early")
    samples = tuple(Sample(kind, float(at), int(live), int(resident)) for kind, at, live, resident in lines)
    return Course(samples, float(cost[1]))


def scenarios(operations: int, mib: int, ended: int, day_s: float) -> dict[str, list[str]]:
    """The arguments of the program by scenario."""
    return {
        "drift": ["drift", "3", str(operations), str(SEED)],
        "short": ["idle", str(mib), "64", "64", "keep"],
        "mixed": ["idle", str(mib), "16", "32768", "keep"],
        "ended": ["idle", str(mib), "16", "32768", "end"],
        "joined": ["ends", str(ended), "joined"],
        "detached": ["ends", str(ended), "detached"],
        "day": ["day", str(day_s), str(RATE), str(SEED)],
    }


def measure(allocators: Sequence[str], asked: Mapping[str, Sequence[str]], jobs: int) -> Courses:
    """Every scenario under every allocator; the days of all of them run at the same time, because they mostly sleep.

    raises: LoamError if an allocator cannot be loaded, or the program fails under it
    """
    rows = malloc_idle.loaded_rows(allocators)
    executable = Path(build.ensure_built(["service"])["libraries"]["service"])
    courses: Courses = {}
    for scenario, arguments in asked.items():
        console.note(f"{scenario}: {len(rows)} processes ...")
        with ThreadPoolExecutor(len(rows) if scenario == "day" else jobs) as pool:
            waiting = {name: pool.submit(malloc_idle.output, executable, arguments, *how) for name, how in rows.items()}
            courses[scenario] = {name: read(one.result()) for name, one in waiting.items()}
    return courses


def a_thread(course: Course, threads: int) -> float:
    """Bytes that stay for each thread that ended, from a tenth of them on; 0 where the process did not grow."""
    grown = course.of("ended")[-1].resident - course.of("begun")[-1].resident
    return max(0.0, grown / (0.9 * threads))


def _table(heads: Sequence[str], values: Mapping[str, Sequence[float]], digits: int = 3) -> list[str]:
    """Rows by name; the least of each column is bold."""
    least = [min(column) for column in zip(*values.values(), strict=True)]
    lines = ["| | " + " | ".join(heads) + " |", "| --- |" + " ---: |" * len(heads)]
    for name, row in values.items():
        cells = []
        for value, best in zip(row, least, strict=True):
            text = rounding.significant(value, digits)
            cells.append(f"**{text}**" if value <= best * (1 + _EVEN) else text)
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def _drift(rows: Mapping[str, Course]) -> dict[str, list[float]]:
    return {
        name: [max(one.resident for one in course.of("phase")) / _MIB, course.over_live("phase"), course.last("freed"),
               course.last("later"), course.processor_s]
        for name, course in rows.items()
    }  # fmt: skip


def _idle(courses: Courses) -> dict[str, list[float]]:
    return {
        name: [_rest(courses[scenario][name]) for scenario in ("short", "mixed", "ended")] for name in courses["short"]
    }


def _rest(course: Course) -> float:
    """MiB that an idle process keeps, with half a MiB for what is no block."""
    return max(0.5, course.last("idle"))


def _ends(courses: Courses, threads: int) -> dict[str, list[float]]:
    return {
        name: [a_thread(courses[scenario][name], threads) for scenario in ("joined", "detached")]
        for name in courses["joined"]
    }


def _day(rows: Mapping[str, Course]) -> dict[str, list[float]]:
    return {
        name: [course.peak(), course.over_live("tick"), course.last("hour"), course.processor_s]
        for name, course in rows.items()
    }


def page(courses: Courses, asked: Mapping[str, Sequence[str]], where: str) -> str:
    """The page. asked: as scenarios() gives it; where: the machine and the day, a sentence"""
    _, workers, operations, _ = asked["drift"]
    threads, mib = int(asked["joined"][1]), asked["short"][1]
    _, seconds, rate, _ = asked["day"]
    drift, idle, ends, day = _drift(courses["drift"]), _idle(courses), _ends(courses, threads), _day(courses["day"])
    sentences = [*_opening(drift, idle, ends, day), where]
    lines = [
        *opening.lines("The malloc of long-running services", "malloc-services", sentences, _CAPTION),
        "```", "./loam page malloc-services     measures and writes this page", "```", "",
        "`lab/probe/service` is a service in small. It counts the bytes that it holds, and reads its resident memory",
        "from the system. Each row is one process; **bold** is the least of a column.",
        f"*{HELPED}* has `LOAM_MALLOC_BACKGROUND=1` ([settings](../embedding.md)).", "",
        "## Sizes that drift", "",
        f"{workers} threads replace random blocks of a table; 200 MiB are held. The mean size goes from 40 to 5000",
        f"bytes and back to 60, in ten phases of {rounding.count(int(operations))} operations a thread. Then 98 % of the",
        "blocks are freed. MiB; the peak, and resident over live bytes, are those at the ends of the phases.", "",
        *_table(("peak", "resident over live, mean", "98 % freed", "1.5 s later", "processor, s"), drift), "",
        "## Idle", "",
        f"Four threads allocate {mib} MiB together, free all of it, and sleep. MiB after 5 s.", "",
        *_table(("64 B", "16 B to 32 KiB", "the same, threads ended"), idle), "",
        "## Threads that end", "",
        f"{rounding.count(threads)} threads come and go, one after the other. Each has a value under each of 33 keys,",
        "which their destructors free. Bytes that stay for each thread; a few are pages that the process took once.", "",
        *_table(("joined", "detached"), ends), "",
        "## A day", "",
        f"Four workers serve requests for {seconds} s, which stand for 24 hours; in the busiest hour {rate} a second.",
        "A request parses strings, touches a session, sometimes stores an answer in a cache that all workers share,",
        "and builds an answer. Entries of the cache grow from morning to evening. At night a batch of two threads",
        "sorts long rows. All processes run at the same time. MiB; the mean is over the moments with",
        f"{_LEAST_LIVE >> 20} live MiB or more. The picture has the peak of each hour.", "",
        *_table(("peak", "resident over live, mean", "at midnight", "processor, s"), day), "",
    ]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


_CAPTION = "Resident memory, MiB: while sizes drift, and in the hours of a day"


def _opening(
    drift: Mapping[str, Sequence[float]], idle: Mapping[str, Sequence[float]], ends: Mapping[str, Sequence[float]],
    day: Mapping[str, Sequence[float]],
) -> list[str]:  # fmt: skip
    """What the page begins with: ours beside the best of the others."""
    return [
        f"Sizes that drift: {_beside(drift, 0, 'MiB at the peak')}; {_beside(drift, 3, 'MiB after nearly all was freed')}.",
        f"Idle for 5 s: {_beside(idle, 0, 'MiB of 64-byte blocks')}; {_beside(idle, 1, 'MiB of mixed ones')}.",
        f"Threads that end: {_beside(ends, 0, 'bytes stay for each')}.",
        f"A day: {_beside(day, 0, 'MiB at the peak')}; {_beside(day, 1, 'times what is live in the mean')}.",
    ]


def _beside(rows: Mapping[str, Sequence[float]], column: int, what: str) -> str:
    """Ours, and the least of the others in brackets; the least of all where ours was not measured."""
    others = {name: row[column] for name, row in rows.items() if name not in (OURS, HELPED)}
    best = min(others, key=others.__getitem__) if others else ""
    text = f" ({best} {rounding.significant(others[best])})" if best else ""
    own = rows[OURS][column] if OURS in rows else None
    return f"{OURS} {rounding.significant(own)} {what}{text}" if own is not None else f"{what}:{text}"


def picture(courses: Courses) -> str:
    """Resident memory over the phases of the drift, and over the hours of the day; what is live is grey."""
    drift = {name: _points(course.of("phase")) for name, course in courses["drift"].items()}
    day = {name: _hours(course) for name, course in courses["day"].items()}
    names = [name for name in DRAWN if name in drift]
    colours = {name: THREADS[place % len(THREADS)] for place, name in enumerate(names)}
    panels = [
        ("sizes that drift", _panel("drift", "phase", drift, _live(courses["drift"], names, "phase"), colours)),
        ("a day", _panel("day", "hour", day, _live(courses["day"], names, "hour"), colours)),
    ]
    keys = [svg.Key(name, colour, "line") for name, colour in colours.items()] + [svg.Key(LIVE, MUTED, "line")]
    return svg.sheet(_CAPTION, [svg.Row("", panels)], keys)


# Places of a curve: (phase or hour, MiB).
Places = Sequence[tuple[float, float]]


def _points(samples: Sequence[Sample]) -> Places:
    return [(place + 1, one.resident / _MIB) for place, one in enumerate(samples)]


def _hours(course: Course) -> Places:
    """The peak of each hour."""
    ends = [one.seconds for one in course.of("hour")]
    peaks = [0.0] * len(ends)
    for one in course.samples:
        hour = next((place for place, end in enumerate(ends) if one.seconds <= end), None)
        if hour is not None:
            peaks[hour] = max(peaks[hour], one.resident / _MIB)
    return [(place + 1, peak) for place, peak in enumerate(peaks)]


def _live(rows: Mapping[str, Course], names: Sequence[str], kind: str) -> Places:
    return [(place + 1, one.live / _MIB) for place, one in enumerate(rows[names[0]].of(kind))]


def _panel(name: str, across: str, rows: Mapping[str, Places], live: Places, colours: Mapping[str, str]) -> svg.Drawing:
    drawn = {row: rows[row] for row in colours}
    heights = [height for places in (*drawn.values(), live) for _, height in places]
    frame = Frame(Axis(across, 1, max(len(live), 2)), Axis("MiB", *span(heights, zero=True)))
    frame.line(live, MUTED, width=1.2, hover=LIVE)
    descriptions = []
    for row, places in drawn.items():
        peak = max(height for _, height in places)
        descriptions.append(f"{row}: at most {rounding.significant(peak)} MiB")
        frame.line(places, colours[row], width=2.6 if row == OURS else 1.6, hover=descriptions[-1])
    return frame.draw(f"services-{name}", name, "; ".join(descriptions))


def _where() -> str:
    host = machines.host()
    facts = host.facts()
    return f"{facts['cpu']}, {facts['cores']} cores, kernel {facts['kernel']}, {datetime.datetime.now(datetime.UTC):%Y-%m-%d}."


def main(arguments: Sequence[str]) -> int:
    """Measure, and write the page with its picture."""
    parser = subcommands.Parser("page", "malloc-services", __doc__)
    parser.add_argument("--allocator", default="", help="names, separated by commas (all that are installed)")
    parser.add_argument(
        "--operations", type=subcommands.count, default=OPERATIONS, help="of each thread in a phase of the drift"
    )
    parser.add_argument("--mib", type=subcommands.count, default=MIB, help="what an idle process held before")
    parser.add_argument("--threads", type=subcommands.count, default=ENDED, help="threads that end, ten or more")
    parser.add_argument("--day", type=subcommands.count, default=DAY_S, help="seconds of the day")
    parser.add_argument("--jobs", type=subcommands.count, default=JOBS, help="processes at a time, except for the day")
    parser.add_argument("--page", type=Path, default=writing.place("malloc-services"))
    options = parser.parse_args(arguments)
    allocators = options.allocator.split(",") if options.allocator else malloc_idle.installed()
    asked = scenarios(options.operations, options.mib, options.threads, options.day)
    courses = measure(allocators, asked, options.jobs)
    options.page.with_suffix(".svg").write_text(picture(courses))
    return writing.write(options.page, page(courses, asked, _where()))
