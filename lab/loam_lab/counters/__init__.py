"""Counting what the processor does: hardware counters where they count, valgrind's models where they do not."""
