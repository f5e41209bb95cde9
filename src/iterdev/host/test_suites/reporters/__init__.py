"""Programs that run inside of a project's tests, and write the events that `reports/events.py` reads.

They are copied next to the report and loaded by the project's own interpreter, which may be old: they use nothing but
the runner that loads them.
"""
