"""loam explain: one run that is not timed, and who aborted whom in it: blocks, source lines, and what placement makes."""
