"""How the names of frames in call stacks end, and so say whose they are: bench/stacks.py writes them, report/flame.py reads."""

from __future__ import annotations

KERNEL, ALLOCATOR = " (kernel)", " (allocator)"
