"""A scripted model: a server for real coding agents that plays a script."""
