"""A session: its events, its state, and what follows from them."""
