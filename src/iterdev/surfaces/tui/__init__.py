"""The dashboard in a terminal. It needs textual, the extra `iterdev[watch]`, imported only by `iterdev watch`."""
