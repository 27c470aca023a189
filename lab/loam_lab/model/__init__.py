"""Data that the lab reads and writes: studies, cells, workload records, results.  No processes, no statistics."""
