"""A model that plays a script, for real coding agents to talk to on loopback, without a key and without a network."""
