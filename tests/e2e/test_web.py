"""The web page in a real browser, served by the real command, with the real engine behind it."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.app.conftest import DEV, Sessions, sessions
from tests.conftest import Repo
from tests.e2e.browsing import Server, browser, looking, serving
from tests.e2e.conftest import PATIENCE, eventually
from tests.session_files import processes
from tests.surfaces.web.conftest import filled
from tests.surfaces.web.sessions import hostile

from iterdev.core.session import events
from iterdev.surfaces.web.guard import MOST_HEADER
from iterdev.surfaces.web.routes import PAGES
from iterdev.surfaces.web.server import MOST_CONNECTIONS
from iterdev.teams.development.demo import REQUIREMENT

__all__ = ["browser", "sessions"]
DESKTOP, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844}
AXE = next(Path(axe_playwright_python.__file__).parent.rglob("axe.min.js")).read_text(encoding="utf-8")
RULES = "['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa', 'best-practice']"
ACTS = ("accept", "archive", "clean", "export", "pr", "reopen", "resume", "retry", "rollback")
VARIANTS = (
    *("?at=3", "?all=1", "/timeline?part=1&fold=no", "/changes?layout=beside", "/t/DEV-001/output?q=script"),
    *("/documents?name=context.md", "/do/export?target=../x", "/do/rollback?target=DEV-001"),
)
"""Of the pages of a session, those that show something else if they are asked to."""
SAMPLE = Path(sys.modules["iterdev"].__path__[0]) / "sample"


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
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
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
    paths = [filled(path, **names, act=act) for path in PAGES for act in (ACTS if "{act}" in path else ACTS[:1])]
    paths += [f"/s/{session}{variant}" for variant in VARIANTS]
    wrong: dict[str, object] = {}
    with serving(sessions.repo) as server:
        with looking(browser, server, viewport=DESKTOP) as (page, complaints):
            for path in paths:
                page.goto(f"{server.address}{path}")
                expect(page.locator("#live")).to_be_visible()
                page.evaluate(AXE)
                found = violations(page, "light") + violations(page, "dark") + complaints
                found += ["something ran"] if page.evaluate("() => 'ran' in window") else []
                wrong |= {path: found} if found else {}
                complaints.clear()
        with looking(browser, server, viewport=PHONE, is_mobile=True, has_touch=True) as (page, complaints):
            for path in paths:
                page.goto(f"{server.address}{path}")
                expect(page.locator("#live")).to_be_visible()
                width = page.evaluate("() => document.documentElement.scrollWidth")
                found = [*complaints, *([f"{width} pixels wide"] if width > PHONE["width"] else [])]
                wrong |= {f"on a phone: {path}": found} if found else {}
                complaints.clear()

    assert len(paths) > 35
    assert wrong == {}


def violations(page: Page, colours: Literal["light", "dark"]) -> list[str]:
    """What axe finds on the page that is shown."""
    page.emulate_media(color_scheme=colours, reduced_motion="reduce")
    options = f"{{runOnly: {RULES}, resultTypes: ['violations']}}"
    # Only what is wrong is brought here: the whole report is as long as the page.
    found = page.evaluate(f"async () => (await axe.run(document, {options})).violations")
    return [f"{colours}: {one['id']}: {one['nodes'][0]['html'][:200]}" for one in found]


def test_output_is_followed_until_a_person_scrolls_up_and_matches_are_gone_through_by_key(
    browser: Browser, sessions: Sessions
) -> None:
    session = sessions.start("Fix it", events.AttemptStarted(DEV, 1, "mine", sessions.repo.git("rev-parse", "main")))
    log = sessions.repository.folder(sessions.state(session)) / "logs" / "DEV-001-1.log"
    log.parent.mkdir()
    log.write_text("".join(f"line {number}\n" for number in range(1, 401)))
    tall = {"width": 1280, "height": 2000}
    with serving(sessions.repo) as server, looking(browser, server, viewport=tall) as (page, complaints):
        page.goto(f"{server.address}/s/{session}/t/DEV-001/output?q=line+3")
        shown, button = page.locator("[data-grows]"), page.locator("[data-follow-toggle]")
        expect(page.locator("#live")).to_have_attribute("data-state", "live")
        with log.open("a") as file:
            file.write("the newest\n")
        expect(shown.get_by_text("the newest")).to_be_in_viewport()
        expect(button).to_have_text("following")
        page.keyboard.press("f")
        expect(button).to_have_text("follow")
        with log.open("a") as file:
            file.write("one more\n" * 20)
        expect(button).to_have_text("new lines")
        expect(shown.get_by_text("one more").last).not_to_be_in_viewport()
        page.keyboard.press("f")
        expect(shown.get_by_text("one more").last).to_be_in_viewport()
        page.keyboard.press("n")
        page.keyboard.press("n")
        expect(page).to_have_url(re.compile(r"#l30$"))
        page.get_by_label("wrap").uncheck()
        expect(shown).to_have_css("white-space", "pre")

    assert complaints == []


def test_a_second_call_names_the_first_server_and_the_page_is_private(repo: Repo) -> None:
    with serving(repo) as server:
        again = repo.iterdev("web", "--no-open")
        file = next((repo.home / "iterdev" / "web").rglob("server.json"))
        modes = [path.stat().st_mode & 0o077 for path in (file, file.parent)]
        code = server.end()

    assert again.stdout.strip() == server.link
    assert f"It is already running, in process {server.process.pid}" in again.stderr
    assert modes == [0, 0]
    assert (code, file.exists()) == (130, False)
    with serving(repo) as server:
        assert server.link != again.stdout.strip()


def test_connections_and_headers_are_limited_and_the_page_is_there_again_afterwards(repo: Repo) -> None:
    with serving(repo) as server, ExitStack() as held:
        place = urlsplit(server.address)

        def status(**headers: str) -> int:
            with closing(HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE)) as connection:
                connection.request("GET", "/", headers=headers)
                return connection.getresponse().status

        fits, too_long = status(padding="x" * (MOST_HEADER // 2)), status(padding="x" * (MOST_HEADER + 1))
        for _ in range(MOST_CONNECTIONS - 1):
            held.enter_context(socket.create_connection((place.hostname, place.port), timeout=PATIENCE))
        full = eventually(lambda: status() == HTTPStatus.SERVICE_UNAVAILABLE, "the limit of connections")
        held.close()
        free = eventually(lambda: status() == HTTPStatus.OK, "a free connection")

    assert fits == HTTPStatus.OK
    # Of one that comes in pieces, the end is not waited for.
    assert too_long in {HTTPStatus.BAD_REQUEST, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE}
    assert (full, free) == (True, True)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_other_machines_reach_the_page_only_with_a_token_of_the_user(repo: Repo, host: str) -> None:
    (repo.home / "short").write_text("short")
    refused = repo.iterdev("web", "--host", host)
    short = repo.iterdev("web", "--host", host, "--token-file", str(repo.home / "short"))
    (repo.home / "token").write_text("x" * 40)
    with serving(repo, "--host", host, "--token-file", str(repo.home / "token")) as server:
        assert server.process.stderr
        warnings = server.process.stderr.readline() + server.process.stderr.readline()
        shown = posted(server, "127.0.0.1")
        unknown = posted(server, "my.machine")
    options = ("--token-file", str(repo.home / "token"), "--allow-writes", "--name", "my.machine")
    with serving(repo, "--host", host, *options) as server:
        changed = posted(server, "my.machine")

    assert (shown, unknown, changed) == (
        HTTPStatus.METHOD_NOT_ALLOWED,
        HTTPStatus.MISDIRECTED_REQUEST,
        HTTPStatus.BAD_REQUEST,
    )
    assert (refused.returncode, "needs --token-file" in refused.stderr) == (2, True)
    assert (short.returncode, "has no token" in short.stderr) == (2, True)
    assert "sessions can be only shown by everybody with the token" in warnings


def posted(server: Server, name: str) -> int:
    """The answer to a form without any field, sent to the server by one of its names."""
    port, token = urlsplit(server.address).port, server.link.partition("#token=")[2]
    headers = {"Host": f"{name}:{port}", "Origin": f"http://{name}:{port}", "X-Iterdev": "1"}
    machine = "::1" if "[" in server.address else "127.0.0.1"
    with closing(HTTPConnection(machine, port, timeout=PATIENCE)) as connection:
        connection.request("POST", "/wisdom", headers={**headers, "Authorization": f"Bearer {token}"})
        return connection.getresponse().status


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
