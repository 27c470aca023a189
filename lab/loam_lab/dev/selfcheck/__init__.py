"""The instrument tests itself: coverage, detection, volume."""
