"""Allocators as a factor: the registry, what an object file is, and the proof that a process really uses it."""
