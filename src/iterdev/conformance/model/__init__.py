"""A scripted model server that real coding agents can talk to."""
