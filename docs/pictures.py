"""Draws the pictures of the documentation from one session: the demo, run for real in a temporary folder.

python docs/pictures.py             all pictures
python docs/pictures.py NAME ...    only these, such as watch.svg

A picture of another surface is a function that gets the repository and the session, and a line in PICTURES.
"""
# ruff: noqa: INP001 - a script, not a part of a package

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import anyio
from playwright.sync_api import sync_playwright

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

CHROMIUM = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
WINDOW, PHONE = (1280, 800), (390, 780)
"""Width and height, in pixels."""

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


def web(repository: Repository, session: SessionId, path: str, *, dark: bool = False, phone: bool = False) -> bytes:
    """A page of `iterdev web`, as Chromium shows it."""
    width, height = PHONE if phone else WINDOW
    argv = [Path(sys.executable).with_name("iterdev"), "web", "--no-open"]
    with (
        subprocess.Popen(argv, cwd=repository.top, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as playwright,
    ):
        link = server.stdout.readline().strip() if server.stdout else ""
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=list(CHROMIUM))
        page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
        page.goto(link)
        page.locator("#live").wait_for()
        page.goto(link.partition("/#")[0] + path.format(session=session))
        page.wait_for_timeout(1000 * SETTLED)
        picture = page.screenshot()
        browser.close()
        server.terminate()
    return picture


PICTURES: Mapping[str, Picture] = {
    "watch.svg": lambda repository, session: watch(repository, session, "d"),
    "watch-tasks.svg": lambda repository, session: watch(repository, session, "down", "down"),
    "timeline.svg": timeline,
    "web.png": lambda repository, session: web(repository, session, "/s/{session}"),
    "web-changes.png": lambda repository, session: web(repository, session, "/s/{session}/changes", dark=True),
    "web-phone.png": lambda repository, session: web(repository, session, "/", phone=True),
}


def main(names: list[str]) -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        os.environ.update(TMPDIR=home, ITERDEV_HOME=f"{home}/iterdev")
        tempfile.tempdir = None
        repository = demo.create_repository()
        session = demo.DEMOS[repository.default_team.name].start(repository)
        anyio.run(resume.run_session, repository, session, RunObserver())
        for name in names or PICTURES:
            (FOLDER / name).write_bytes(PICTURES[name](repository, session))
            print(FOLDER / name)  # noqa: T201 - what was drawn
        repository.close()


if __name__ == "__main__":
    main(sys.argv[1:])
