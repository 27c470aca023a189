"""Measuring: processes, what is counted of them, plans of blocks, and the machines that run them. Nothing is drawn here."""
