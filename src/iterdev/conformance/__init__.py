"""The conformance kit: scenarios that show whether a coding agent behaves as iterdev requires. Needs the extra."""
