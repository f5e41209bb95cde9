"""Runs a team of coding agents on a git repository, and never loses their work."""

__version__ = "0.1.0"
