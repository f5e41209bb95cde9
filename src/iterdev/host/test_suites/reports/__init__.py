"""Parses the reports of test runners: which tests passed, which failed, how many were skipped.

A parser returns None for a text that it does not understand completely, so that a broken report never looks like
a successful one. Reports are written by the project: parsers take linear time, and do not rely on their size or depth.
"""
