"""The project's own tests behind `loam test`."""
