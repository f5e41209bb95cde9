"""Carries out what the core decides, and reports what it saw."""
