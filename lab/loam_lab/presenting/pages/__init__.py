"""Pages of docs/performance, each rebuilt from results by one command."""
