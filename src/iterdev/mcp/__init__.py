"""The Model Context Protocol, for the tools of agents and for people's own clients.

The protocol's own SDK would take 0.6 s and 40 MB of every run; its client checks in the tests that we are understood.
"""
