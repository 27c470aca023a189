"""The claims ledger: what papers say, decided by intervals of what was measured."""
