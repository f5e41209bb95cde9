"""The web page: what a session does, in a browser. It reads like `iterdev status`, and acts like the other commands."""
