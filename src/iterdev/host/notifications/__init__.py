"""The ways in which a message reaches the user: programs, and addresses of the web."""
