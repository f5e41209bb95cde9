"""Packages that only some commands need, and how they are installed."""

import shlex
import sys


def install_command(extra: str) -> str:
    """Installs an extra of iterdev for the Python that runs it, which need not be the one of the shell."""
    return f"{shlex.quote(sys.executable)} -m pip install 'iterdev[{extra}]'"
