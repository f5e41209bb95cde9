"""The project's tests: found, run, and read."""
