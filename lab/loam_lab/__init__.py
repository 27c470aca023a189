"""The lab of Loam: plans, paired runs, intervals and reports for allocators under transactions."""

__version__ = "0.2.0"
