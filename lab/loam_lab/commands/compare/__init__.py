"""Two results beside each other: what became better or worse, and whether that passes a gate."""
