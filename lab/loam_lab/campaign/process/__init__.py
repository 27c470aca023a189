"""Running one process, and looking at it."""
