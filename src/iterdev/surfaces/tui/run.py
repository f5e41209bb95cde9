"""Starts the dashboard, and gives the terminal back however it ends."""

import os
import time

from iterdev.app.sessions import Repository
from iterdev.core.types import SessionId
from iterdev.surfaces.tui.dashboard import Dashboard
from iterdev.surfaces.tui.palette import palette_for
from iterdev.surfaces.tui.source import RepositorySource


def run(repository: Repository, session: SessionId | None) -> None:
    dashboard = Dashboard(RepositorySource(repository, session), now=time.time, palette=palette_for(os.environ))
    try:
        was_quit = dashboard.run()
    finally:
        dashboard.close()
    if dashboard.return_code:
        raise RuntimeError("the dashboard ended with the error above")
    if not was_quit:
        # By Ctrl-C, or another signal that asks to stop.
        raise KeyboardInterrupt
