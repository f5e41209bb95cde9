"""Finds the test suites of one kind of project each, and the runners behind their commands."""
