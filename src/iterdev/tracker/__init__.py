"""The issue tracker as data: issues, their solutions, and the queues in which solutions are carried out.

It works without a session. Everything here is pure; `store/tracker_log.py` keeps it.
"""
