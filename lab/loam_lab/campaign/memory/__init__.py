"""Memory over time, looked at from outside, in runs of their own."""
