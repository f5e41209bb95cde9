"""Files of other tools as issues or tasks. Each module reads one format."""
