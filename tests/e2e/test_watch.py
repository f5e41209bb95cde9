"""`iterdev watch` in a real terminal, with the real engine in the background."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page
from tests.conftest import Repo
from tests.e2e.browsing import browser, looking, serving
from tests.e2e.conftest import Background, Terminal, eventually

from iterdev.app.live.watch import SessionWatch
from iterdev.app.sessions import Repository
from iterdev.core.types import SessionId

__all__ = ["browser"]
ASKED = "Add percentage discounts to the till"


@pytest.fixture
def till(repo: Repo) -> Iterator[Repo]:
    """The project of the demo, whose scripted team has a defect planted in its first try."""
    with resources.as_file(resources.files("iterdev") / "sample") as sample:
        shutil.copytree(sample, repo.path, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    repo.commit("the till")
    yield repo
    document = json.loads(repo.iterdev("status", "--json").stdout or "{}")
    if isinstance(pid := document.get("process"), int):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def run_detached(repo: Repo) -> str:
    """The demo's request, in the background, where it asks about its plan."""
    started = repo.iterdev("run", "--detach", "--pipeline", "sprint", ASKED)
    assert started.returncode == 0, started.stderr
    return started.stdout.strip()


def test_the_demo_is_watched_its_question_answered_its_findings_read_and_its_work_accepted(
    till: Repo, terminal: Terminal
) -> None:
    session = run_detached(till)
    before = till.git("rev-parse", "main")

    terminal.type("iterdev watch; echo exit=$?")
    terminal.until("? asks", "DESIGN-001", "waiting for an answer to plan")
    terminal.press("a")
    terminal.until("Run these tasks?", f"iterdev answer {session} plan approve")
    terminal.press("1")
    terminal.until('Enter: answer "approve"')
    terminal.press("Enter")
    terminal.until("✓ VERIFY-002", "fix rounds: 1 of 3", "✓ done")
    terminal.press("d")
    findings = terminal.until(
        "2 findings, 0 open", "total() returns a float", "fixed in REVIEW-002", "+ def total(cart, dis"
    )
    terminal.type(":accept")  # at once, as a person who knows the keys
    terminal.until("2 commits, 2 files into main, which only moves forward", f"iterdev accept {session}", "Enter do it")
    terminal.press("Enter")
    terminal.until("✓ accepted", "main is now at")
    terminal.press("q")
    left = terminal.until("exit=0")

    assert "till/cart.py" in findings
    assert till.git("rev-parse", "main") != before
    assert "discount" in till.git("show", "main:till/cart.py")
    assert "iterdev watch; echo exit=$?" in left, "the terminal is as it was before"
    assert watching(till) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_whatever_becomes_of_the_dashboard_the_session_goes_on(till: Repo, number: signal.Signals) -> None:
    session = run_detached(till)
    with closing(Terminal(till)) as terminal:
        terminal.type("iterdev watch; echo exit=$?; stty -a | grep -o -- '-*icanon'")
        terminal.until("? asks")
        (pid,) = watching(till)

        os.kill(pid, number)
        ended = terminal.until(f"exit={137 if number is signal.SIGKILL else 130}", "icanon")

    assert number is signal.SIGKILL or "-icanon" not in ended, "the terminal was given back"
    till.iterdev("answer", session, "plan", "approve")
    followed = till.iterdev("follow", session)
    assert (followed.returncode, followed.stdout.splitlines()[-1][-len("finished: 7 completed") :]) == (
        0,
        "finished: 7 completed",
    )


def watching(repo: Repo) -> list[int]:
    """The dashboards that run in the repository."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink() == repo.path:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                found += [int(entry.name)] if b"watch" in words else []
    return found


class Shown(NamedTuple):
    """What a surface shows: the last entry of the journal that it knows, and how many tasks are completed."""

    seq: int
    completed: int


def on_screen(terminal: Terminal) -> Shown:
    head = next(line for line in reversed(terminal.screen().splitlines()) if "#" in line and "/" in line)
    completed, seq = re.findall(r" (\d+)/\d+ .*#(\d+)", f"{head} ")[0]
    return Shown(int(seq), int(completed))


def on_page(page: Page) -> Shown:
    seq, completed = page.evaluate(
        "() => [document.querySelector('.seq').textContent, document.querySelector('#part-head progress').value]"
    )
    return Shown(int(seq.removeprefix("entry ")), completed)


def in_status(repo: Repo) -> Shown:
    document = json.loads(repo.iterdev("status", "--json").stdout)
    return Shown(document["seq"], document["counts"]["completed"])


def test_dashboards_a_follower_and_the_engine_show_the_same_at_the_same_entry(till: Repo, browser: Browser) -> None:
    session = run_detached(till)
    watched = SessionWatch(Repository(till.path), SessionId(session))
    with (
        closing(Terminal(till)) as one,
        closing(Terminal(till)) as two,
        Background(till, "follow", "--json") as follow,
        serving(till) as server,
        looking(browser, server) as (page, complaints),
    ):
        page.goto(f"{server.address}/s/{session}")
        surfaces: list[Callable[[], Shown]] = [
            lambda: on_screen(one),
            lambda: on_screen(two),
            lambda: on_page(page),
            lambda: in_status(till),
        ]
        for terminal in (one, two):
            terminal.type("iterdev watch")
            terminal.until("? asks")
        asking = eventually(lambda: agreed(surfaces), "the same entry everywhere, at the question")
        till.iterdev("answer", session, "plan", "approve")
        followed = json.loads(follow.end().stdout)
        for terminal in (one, two):
            terminal.until("✓ done", "✓ VERIFY-002")
        over = eventually(lambda: agreed(surfaces), "the same entry everywhere, at the end")
        changes = watched.look()
        screens = [terminal.screen() for terminal in (one, two)]
        for terminal in (one, two):
            terminal.press("q")

    assert changes
    assert over == Shown(watched.state.seq, 7)
    assert asking.seq < over.seq
    assert [(line["seq"], line["text"]) for line in followed["events"]] == [
        (one.seq, one.text) for one in changes.lines
    ]
    assert screens[0].partition("7/7")[2] == screens[1].partition("7/7")[2]
    assert complaints == []


def agreed(surfaces: Sequence[Callable[[], Shown]]) -> Shown | None:
    shown = {look() for look in surfaces}
    return shown.pop() if len(shown) == 1 else None


def test_without_a_terminal_watching_is_following_and_says_so(repo: Repo) -> None:
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it")

    watched, followed = repo.iterdev("watch"), repo.iterdev("follow")

    assert watched.stderr.startswith(f"This is not a terminal. For plain lines: iterdev follow {repo.folder().name}")
    assert (watched.stdout, watched.returncode) == (followed.stdout, followed.returncode)
    assert repo.iterdev("watch", "--json").stdout == repo.iterdev("follow", "--json").stdout


@pytest.mark.parametrize("variable", ["NO_COLOR=1", "CI=1", "TERM=dumb"])
def test_in_a_terminal_that_wants_plain_text_watching_is_following(
    repo: Repo, terminal: Terminal, variable: str
) -> None:
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it")

    terminal.type(f"{variable} iterdev watch; echo exit=$?")

    terminal.until("For plain lines: iterdev follow", "finished: 2 completed", "exit=0")


@pytest.mark.parametrize("words", [["--version"], ["run", "-y", "--pipeline", "patch", "Fix it"], ["status"]])
def test_other_commands_do_not_import_the_dashboard(repo: Repo, words: list[str]) -> None:
    program = (
        "import sys; from iterdev.__main__ import start; code = start(sys.argv[1:]);"
        "sys.exit(code or bool([name for name in sys.modules if name.startswith(('textual', 'iterdev.surfaces.tui'))]))"
    )
    repo.iterdev("run", "-y", "--pipeline", "patch", "Fix it first")

    done = subprocess.run(
        [sys.executable, "-c", program, *words], cwd=repo.path, env=repo.env, capture_output=True, check=False
    )

    assert done.returncode == 0, done.stderr
