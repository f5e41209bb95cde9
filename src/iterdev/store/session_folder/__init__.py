"""The files of a session folder: projections of the state, and what is read back from them."""
