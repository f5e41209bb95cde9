"""How sessions are shown."""
