"""All programs by name, in the order of the page."""

from __future__ import annotations

from loam_lab.programs import interpreters, servers, tools

PROGRAMS = {program.name: program for program in (*tools.PROGRAMS, *interpreters.PROGRAMS, *servers.PROGRAMS)}
