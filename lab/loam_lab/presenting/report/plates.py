"""What figures are made of: panels of one case on a plate, plates of one section in a figure."""

from __future__ import annotations

from dataclasses import dataclass, field

from loam_lab.presenting.report import charts, palette, svg
from loam_lab.presenting.report.listing import Table
from loam_lab.presenting.report.view import Case, Study


@dataclass(frozen=True)
class Plate:
    """The panels of one case. remarks: sentences beside them; name: for files."""

    case: Case
    name: str
    panels: tuple[tuple[str, svg.Drawing], ...]
    remarks: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """The number of panels."""
        return len(self.panels)


@dataclass(frozen=True)
class Figure:
    """One section's plates with their legend.

    name: its place in the page's template, and for files; short: its title in the list of sections
    below: sentences and tables that report.md has below it; the page has them elsewhere
    about_runs: it shows how was measured, so it comes after the limits, not among the answers
    captioned: a plate's only panel has its caption too, because the title does not say what it shows
    """

    name: str
    title: str
    short: str
    plates: tuple[Plate, ...]
    legend: tuple[svg.Key, ...] = ()
    below: tuple[str | Table, ...] = ()
    about_runs: bool = False
    captioned: bool = False


@dataclass
class Names:
    """Names that are free of captured text's dangers and unique within the page."""

    taken: set[str] = field(default_factory=set)

    def make(self, *parts: str) -> str:
        """A new name of [a-z0-9-]."""
        base = name = charts.slug(*parts)
        number = 2
        while name in self.taken:
            name = f"{base}-{number}"
            number += 1
        self.taken.add(name)
        return name


def allocator_legend(study: Study) -> tuple[svg.Key, ...]:
    """One line per allocator, for figures whose marks carry no names."""
    return tuple(svg.Key(name, colour, "line") for name, colour in palette.of_allocators(study.allocators).items())
