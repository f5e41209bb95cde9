"""Attempts on other machines, through Temporal. It needs the extra `iterdev[temporal]`; `keys` and `names` do not."""
