"""Everything that is asked of git."""
