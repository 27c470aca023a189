"""Real programs under an allocator: each does the same work on glibc's malloc and on another, and must come to the same."""
