"""The commands that run campaigns, from the plan to the report, and what they print."""
