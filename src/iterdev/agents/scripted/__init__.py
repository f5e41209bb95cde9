"""An agent that plays a script, for demos and tests."""
