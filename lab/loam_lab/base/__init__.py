"""What everything else stands on: errors, paths, the console. It knows nothing of measuring."""
