"""Carries out the commands that the core decides on, and records their results."""
