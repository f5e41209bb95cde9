"""Draws the pictures of the documentation from one session: the demo, run for real in a temporary folder.

python docs/pictures.py             all pictures
python docs/pictures.py NAME ...    only these, such as watch.svg

A picture of another surface is a function that gets the repository and the session, and a line in PICTURES.
"""
# ruff: noqa: INP001 - a script, not a part of a package

import asyncio
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio

from iterdev.app import demo, resume
from iterdev.app.resume import RunObserver
from iterdev.app.sessions import Repository
from iterdev.core.types import SessionId
from iterdev.surfaces.tui.dashboard import Dashboard
from iterdev.surfaces.tui.source import RepositorySource

FOLDER = Path(__file__).parent / "pictures"
SIZE = (118, 34)
SETTLED = 1.0
"""Seconds until everything that a key began is on the screen."""
FONT = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""Fonts that a picture would fetch from elsewhere; a reader's own serve as well."""

Picture = Callable[[Repository, SessionId], bytes]


def watch(repository: Repository, session: SessionId, *keys: str) -> bytes:
    """The dashboard in a terminal, after some keys."""

    async def shoot() -> str:
        dashboard = Dashboard(RepositorySource(repository, session), now=time.time)
        async with dashboard.run_test(size=SIZE) as pilot:
            await asyncio.sleep(SETTLED)
            for key in keys:
                await pilot.press(key)
                await asyncio.sleep(SETTLED)
            picture = dashboard.export_screenshot(title="iterdev watch")
        dashboard.close()
        return picture

    return FONT.sub("", anyio.run(shoot)).encode()


def timeline(repository: Repository, session: SessionId) -> bytes:
    """The time line of the report."""
    return (repository.folder(repository.state(session)) / "timeline.svg").read_bytes()


PICTURES: Mapping[str, Picture] = {
    "watch.svg": lambda repository, session: watch(repository, session, "d"),
    "watch-tasks.svg": lambda repository, session: watch(repository, session, "down", "down"),
    "timeline.svg": timeline,
}


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(TMPDIR=home, ITERDEV_HOME=f"{home}/iterdev")
        tempfile.tempdir = None
        repository = demo.create_repository()
        session = demo.start_session(repository)
        anyio.run(resume.run_session, repository, session, RunObserver())
        for name in names or PICTURES:
            (FOLDER / name).write_bytes(PICTURES[name](repository, session))
            print(FOLDER / name)  # noqa: T201 - what was drawn
        repository.close()


if __name__ == "__main__":
    main(sys.argv[1:])
