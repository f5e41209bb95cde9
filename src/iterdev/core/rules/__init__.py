"""The rules of a session: what an event means, what follows from it, and what is started next."""
