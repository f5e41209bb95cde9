"""Whether a real coding agent does what iterdev relies on: scenarios with the scripted model, and their results."""
