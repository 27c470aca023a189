"""From what was observed to result.json."""
