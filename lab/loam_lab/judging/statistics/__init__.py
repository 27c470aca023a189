"""Estimates, intervals and verdicts, and the way from a journal to a result."""
