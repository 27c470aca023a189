"""How the names of frames in call stacks end, and so say whose they are.

commands/bench/stacks.py writes them, presenting/report/flame.py reads them.
"""

from __future__ import annotations

KERNEL, ALLOCATOR = " (kernel)", " (allocator)"
