"""A real browser that looks at the web page, as the real command serves it."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from tests.conftest import Repo
from tests.e2e.conftest import PATIENCE

SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
LATER = 20_000
"""Milliseconds."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests; each has a context of its own, with nothing of the others."""
    program = shutil.which("chromium")
    assert program, "these tests need Chromium: apt-get install chromium"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=list(SWITCHES))
        yield opened
        opened.close()


class Server:
    """`iterdev web`, and a browser that has opened what it printed."""

    def __init__(self, repo: Repo, *options: str) -> None:
        self.process = subprocess.Popen(
            repo.command("web", "--no-open", *options),
            cwd=repo.path,
            env=repo.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout
        self.link = self.process.stdout.readline().strip()
        self.address = self.link.partition("/#")[0]

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


@contextmanager
def serving(repo: Repo, *options: str) -> Iterator[Server]:
    server = Server(repo, *options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.end(signal.SIGKILL)


@contextmanager
def looking(browser: Browser, server: Server, **options: object) -> Iterator[tuple[Page, list[str]]]:
    """A page that has logged in, and what its console complains about."""
    context: BrowserContext = browser.new_context(**options)  # type: ignore[arg-type]
    context.set_default_timeout(LATER)
    page, complaints = context.new_page(), list[str]()

    def heard(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            complaints.append(message.text)

    page.on("console", heard)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(server.link)
    expect(page.locator("#live")).to_be_visible(timeout=LATER)
    try:
        yield page, complaints
    finally:
        context.close()
