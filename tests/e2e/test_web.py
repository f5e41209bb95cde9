"""The web page in a real browser, served by the real command, with the real engine behind it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright
from tests.app.conftest import Sessions, sessions
from tests.conftest import Repo
from tests.e2e.conftest import PATIENCE, eventually
from tests.session_files import processes
from tests.surfaces.web.conftest import filled
from tests.surfaces.web.sessions import hostile

from iterdev.surfaces.web.routes import PAGES
from iterdev.teams.development.demo import REQUIREMENT

__all__ = ["sessions"]
SWITCHES = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text(encoding="utf-8")
RULES = "['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']"
SAMPLE = Path(sys.modules["iterdev"].__path__[0]) / "sample"
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


def demo(repo: Repo) -> str:
    """A session of the demo in the background, which waits for the approval of its plan."""
    shutil.copytree(SAMPLE, repo.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    repo.commit("the sample")
    started = repo.iterdev("run", "--detach", "--pipeline", "sprint", REQUIREMENT)
    assert started.returncode == 0, started.stderr
    return started.stdout.strip()


@pytest.fixture
def ended(repo: Repo) -> Iterator[None]:
    """No engine outlives the test."""
    yield
    for line in processes(repo):
        with suppress(ProcessLookupError):
            os.kill(int(line.split()[0]), signal.SIGKILL)


@pytest.mark.usefixtures("ended")
def test_the_demo_is_watched_answered_read_and_accepted_in_a_browser(browser: Browser, repo: Repo) -> None:
    session = demo(repo)
    with serving(repo) as server, looking(browser, server, viewport=DESKTOP) as (page, complaints):
        assert page.url == f"{server.address}/"
        expect(page).to_have_title(re.compile(r"^\(1\) Needs you"))
        page.get_by_role("button", name="Approve").click()
        expect(page).to_have_url(f"{server.address}/s/{session}")
        # The page changes by itself, from the first task to the last one.
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        expect(page.locator("#part-head")).to_contain_text("Ready", timeout=PATIENCE * 1000)
        expect(page.locator("svg .box.done")).to_have_count(5)
        expect(page.locator("svg .box.asks")).to_have_count(2)
        page.keyboard.press("d")
        expect(page).to_have_url(f"{server.address}/s/{session}/changes")
        expect(page.locator(".finding").first).to_contain_text("a discount above 100 gives the customer money")
        page.get_by_role("link", name="Accept…").click()
        expect(page.locator("#part-preview")).to_contain_text("which only moves forward")
        assert repo.git("rev-parse", "main") != repo.git("rev-parse", f"iterdev/{session}")
        page.get_by_role("button", name="Accept").click()
        expect(page).to_have_url(f"{server.address}/s/{session}")
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        page.keyboard.press("g")
        page.keyboard.press("n")
        expect(page.locator("main")).to_contain_text("Nothing needs you")

    assert complaints == []
    assert repo.git("rev-parse", "main") == repo.git("rev-parse", f"iterdev/{session}")


@pytest.mark.usefixtures("ended")
def test_the_same_on_a_phone_and_a_killed_server_changes_nothing_for_the_session(browser: Browser, repo: Repo) -> None:
    session = demo(repo)
    phone = {"viewport": PHONE, "is_mobile": True, "has_touch": True, "color_scheme": "dark"}
    with serving(repo) as server, looking(browser, server, **phone) as (page, complaints):
        page.get_by_role("link", name="Look").tap()
        expect(page.locator("#part-question")).to_contain_text("Run these tasks?")
        page.get_by_text("approve", exact=True).tap()
        page.get_by_role("button", name="Answer", exact=True).tap()
        expect(page).to_have_url(f"{server.address}/s/{session}")
        server.end(signal.SIGKILL)
        expect(page.locator("#lost")).to_contain_text("Connection lost since")
        unreachable = [text for text in complaints if "ERR_" not in text]
    eventually(lambda: '"phase": "completed"' in repo.iterdev("status", "--json").stdout, "the end of the session")
    with serving(repo) as server, looking(browser, server, **phone) as (page, complaints):
        page.get_by_role("link", name="Look at the changes").tap()
        expect(page.locator(".finding").first).to_be_visible()
        # The style sheet is there when the script runs.
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        width = page.evaluate("() => document.documentElement.scrollWidth")
        page.get_by_role("link", name="Accept…").tap()
        page.get_by_role("button", name="Accept").tap()
        expect(page).to_have_url(f"{server.address}/s/{session}")
        expect(page.locator("#part-head")).not_to_contain_text("Ready")

    assert (unreachable, complaints, width) == ([], [], PHONE["width"])
    assert repo.git("rev-parse", "main") == repo.git("rev-parse", f"iterdev/{session}")


def test_every_view_is_accessible_fits_a_phone_and_runs_nothing_that_others_wrote(
    browser: Browser, sessions: Sessions
) -> None:
    session, issue = hostile(sessions)
    names = {"session": session, "task": "DEV-001", "gate": "plan", "issue": issue}
    acts = ["accept", "archive", "resume", "retry", "rollback"]
    paths = [filled(path, **names, act=act) for path in PAGES for act in (acts if "{act}" in path else acts[:1])]
    wrong: dict[str, object] = {}
    with serving(sessions.repo) as server:
        for mode, options in (
            ("light", {"viewport": DESKTOP, "color_scheme": "light"}),
            ("dark", {"viewport": DESKTOP, "color_scheme": "dark"}),
            ("phone", {"viewport": PHONE, "is_mobile": True, "has_touch": True}),
        ):
            with looking(browser, server, **options) as (page, complaints):
                for path in paths:
                    page.goto(f"{server.address}{path}")
                    expect(page.locator("#live")).to_be_visible()
                    found = list(complaints)
                    found += ["something ran"] if page.evaluate("() => 'ran' in window") else []
                    if mode == "phone":
                        width = page.evaluate("() => document.documentElement.scrollWidth")
                        found += [f"{width} pixels wide"] if width > PHONE["width"] else []
                    else:
                        page.evaluate(AXE)
                        rules = RULES if mode == "light" else "{type: 'rule', values: ['color-contrast']}"
                        report = page.evaluate(f"() => axe.run(document, {{runOnly: {rules}}})")
                        found += [f"{one['id']}: {one['nodes'][0]['html'][:200]}" for one in report["violations"]]
                    if found:
                        wrong[f"{mode} {path}"] = found
                    complaints.clear()
    assert len(paths) > 25
    assert wrong == {}


def test_a_second_call_names_the_first_server_and_the_page_is_private(repo: Repo) -> None:
    with serving(repo) as server:
        again = repo.iterdev("web", "--no-open")
        file = next((repo.home / "iterdev" / "web").rglob("server.json"))
        modes = [path.stat().st_mode & 0o077 for path in (file, file.parent)]
        code = server.end()

    assert again.stdout.strip() == server.link
    assert f"It is running already, in process {server.process.pid}" in again.stderr
    assert modes == [0, 0]
    assert (code, file.exists()) == (130, False)
    with serving(repo) as server:
        assert server.link != again.stdout.strip()


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_reach_the_page_only_with_a_token_of_the_user(repo: Repo, host: str) -> None:
    (repo.home / "short").write_text("short")
    refused = repo.iterdev("web", "--host", host)
    short = repo.iterdev("web", "--host", host, "--token-file", str(repo.home / "short"))
    (repo.home / "token").write_text("x" * 40)
    with serving(repo, "--host", host, "--token-file", str(repo.home / "token")) as server:
        assert server.process.stderr
        warnings = server.process.stderr.readline() + server.process.stderr.readline()

    assert (refused.returncode, "needs --token-file" in refused.stderr) == (2, True)
    assert (short.returncode, "has no token" in short.stderr) == (2, True)
    assert "sessions can be only shown by everybody with the token" in warnings


def test_without_the_extra_there_is_a_hint_to_paste(repo: Repo) -> None:
    lines = ("import sys", "sys.modules['starlette'] = None", "from iterdev.surfaces.cli.main import run")
    code = "; ".join((*lines, "sys.exit(run(['web']))"))
    command = [sys.executable, "-c", code]

    done = subprocess.run(command, cwd=repo.path, env=repo.env, capture_output=True, text=True, check=False)

    assert done.returncode == 4
    assert "-m pip install 'iterdev[web]'" in done.stderr


def test_other_commands_load_nothing_of_the_page(repo: Repo) -> None:
    def loaded(*words: str) -> set[str]:
        command = [sys.executable, "-X", "importtime", "-m", "iterdev", *words]
        done = subprocess.run(command, cwd=repo.path, env=repo.env, capture_output=True, text=True, check=True)
        return {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}

    modules = loaded("--version") | loaded("run", "-y", "--pipeline", "patch", "Fix it")

    roots = {name.partition(".")[0] for name in modules}
    assert "iterdev.engine.loop" in modules
    assert {"starlette", "uvicorn", "jinja2"} & roots == set()
    assert [name for name in modules if name.startswith("iterdev.surfaces.web")] == []


def test_the_server_ends_in_order_at_ctrl_c_also_with_a_browser_connected(browser: Browser, repo: Repo) -> None:
    with serving(repo) as server, looking(browser, server, viewport=DESKTOP):
        code = server.end(signal.SIGINT)

    assert code == 130
