"""A session as data: its events, the parts of its state, and the fold that adds them up."""
