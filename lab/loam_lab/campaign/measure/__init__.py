"""Measuring: plans of paired blocks, one process at a time, an fsynced journal, campaigns that survive a kill."""
