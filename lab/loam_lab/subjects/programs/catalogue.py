"""All programs by name: what the modules of this folder have as PROGRAMS, in the order of the modules' names."""

from __future__ import annotations

import importlib
import pkgutil

import loam_lab.subjects.programs
from loam_lab.subjects.programs.running import Program

_MODULES = [
    one.name for one in pkgutil.iter_modules(loam_lab.subjects.programs.__path__) if not one.name.startswith("_")
]
PROGRAMS: dict[str, Program] = {
    program.name: program
    for name in sorted(_MODULES)
    if name != "catalogue"
    for program in getattr(importlib.import_module(f"loam_lab.subjects.programs.{name}"), "PROGRAMS", ())
}
