"""Where a program's work begins and ends, as far as the program says so.

Our workloads do the work of a timed part in one function (workloads/harness/team.hpp).  Valgrind counts within it, and
hardware counters are opened by the workload's own threads around it, so that no count holds the start, the filling, the
verification, or the waiting of threads for one another before they begin, which takes as long as the machine is busy.
"""

from __future__ import annotations

import functools
from pathlib import Path

WORK = "loam_counted_work"


@functools.cache
def marked(program: str) -> bool:
    """Whether a program has the function, so that its work can be counted alone.  Others are counted whole."""
    try:
        return WORK.encode() in Path(program).read_bytes()
    except OSError:
        return False
