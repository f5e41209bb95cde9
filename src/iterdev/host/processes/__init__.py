"""Processes: started, owned, and ended with all their children."""
