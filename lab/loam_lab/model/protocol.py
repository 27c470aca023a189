"""How the lab tells processes what is under test, and what looks on."""

from __future__ import annotations

# The variables that put the allocator into a process, as a JSON object.  A subject whose description says `starts_others`
# gives them to what it starts, and runs without them itself.
ALLOCATOR_VARIABLES = "LOAM_ALLOCATOR_VARIABLES"

# Names the file that the counting library in front of an allocator writes (lab/interposer/profile.cpp).  It is set where,
# and only where, that library is the first one in LD_PRELOAD.
PROFILE = "LOAM_PROFILE"
