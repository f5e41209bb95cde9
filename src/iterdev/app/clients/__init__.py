"""Calling the teams from inside of people's own coding agents: what is installed there, and how it is removed."""
