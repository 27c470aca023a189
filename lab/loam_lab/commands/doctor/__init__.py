"""`loam doctor`: what this machine can measure, what it cannot, what each absence costs, and what to do about it."""
