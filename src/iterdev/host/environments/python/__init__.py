"""Python: what a project declares, what is installed, and the virtual environment of a workspace."""
