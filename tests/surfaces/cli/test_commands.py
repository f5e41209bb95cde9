"""What a command imports, and what the list of commands says."""

import gc
import sqlite3
import subprocess
import sys

import click
import pytest
from tests.conftest import Repo

from iterdev.surfaces.cli.app import COMMANDS, app

HEAVY = {
    *("asyncio", "anyio", "h11", "rich", "acp", "opentelemetry", "subprocess", "concurrent.futures", "logging"),
    *("ctypes", "csv", "html", "http", "email", "secrets", "tempfile", "shutil", "traceback", "difflib", "pkgutil"),
    *("importlib.metadata", "importlib.util", "socket", "ssl"),
}
NOT_FOR_STATUS = {
    *("host.secrets", "host.git", "host.github", "host.workspaces", "store.tracker_log", "core.rules.replay_check"),
    *("store.session_folder.projector", "store.session_folder.rebuild", "core.views.report", "core.views.timeline"),
}
"""Modules, and packages with all that is in them."""
PACKAGE = "iterdev.surfaces.cli.commands."
HELPS = {name: (folder, text) for folder, commands in COMMANDS.items() for name, text in commands.items()}


def loaded(repo: Repo, *arguments: str) -> set[str]:
    """The modules that a command has imported at its end."""
    called = f"import sys; from iterdev.__main__ import start; start({list(arguments)})"
    code = f"{called}; sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=repo.path, env=repo.env, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.fixture
def with_session(repo: Repo) -> Repo:
    repo.iterdev("run", "--pipeline", "patch", "Fix it")
    return repo


def test_the_version_loads_nothing_of_the_program(repo: Repo) -> None:
    modules = loaded(repo, "--version")

    assert {name for name in modules if name.startswith("iterdev.")} == {"iterdev.__main__"}
    assert "click" not in modules


@pytest.mark.parametrize(
    "arguments", [["status"], ["status", "--json"], ["sessions"], ["report"], ["feedback", "list"]]
)
def test_looking_at_a_session_loads_no_engine(with_session: Repo, arguments: list[str]) -> None:
    modules = loaded(with_session, *arguments)

    folder = HELPS[arguments[0]][0]
    assert {name for name in modules if name.startswith(PACKAGE)} == {
        f"{PACKAGE}{folder}{rest}" for rest in ("", f".{arguments[0]}")
    }
    assert not modules & {"asyncio", "anyio", "h11", "rich", "acp"}
    engine = {name for name in modules if name.startswith(("iterdev.engine.", "iterdev.execution"))}
    assert engine == {"iterdev.engine.repository"}
    assert not [name for name in modules if name.startswith("iterdev.agents.") and name.endswith((".agent", ".common"))]


def test_the_status_starts_no_git_and_loads_only_what_it_shows(with_session: Repo) -> None:
    modules = loaded(with_session, "status")

    assert not modules & HEAVY
    assert not modules & {f"iterdev.{name}" for name in NOT_FOR_STATUS}


def test_what_a_command_imports_is_left_out_of_later_garbage_collections() -> None:
    app.get_command(click.Context(app), "status")

    assert gc.isenabled()
    assert gc.get_freeze_count()


def test_help_loads_no_command(repo: Repo) -> None:
    assert not [name for name in loaded(repo, "--help") if name.startswith(PACKAGE)]


@pytest.mark.parametrize("name", HELPS)
def test_each_command_is_listed_with_its_own_help(name: str) -> None:
    command = app.get_command(click.Context(app), name)

    assert command
    assert command.name == name
    assert command.help == HELPS[name][1]


def test_shell_completion_of_command_names_has_all_of_them() -> None:
    items = app.shell_complete(click.Context(app), "re")

    assert [item.value for item in items] == ["reopen", "replay", "report", "resolve", "resume", "retry"]


@pytest.fixture
def unreadable(with_session: Repo) -> Repo:
    """A repository in whose journal only the summaries of sessions can be read."""
    with sqlite3.connect(with_session.path / ".workflow" / "iterdev.db") as database:
        database.execute("UPDATE events SET body = CAST('garbage' AS BLOB)")
    database.close()
    return with_session


def test_listing_sessions_reads_no_event(unreadable: Repo) -> None:
    listed = unreadable.iterdev("sessions")

    assert (listed.returncode, listed.stderr) == (0, "")
    assert listed.stdout.split()[0] == unreadable.folder().name
    assert listed.stdout.rstrip().endswith("0/2  Fix it")


def test_shell_completion_of_sessions_reads_no_event(unreadable: Repo) -> None:
    typed = {"_ITERDEV_COMPLETE": "bash_complete", "COMP_WORDS": "iterdev status ", "COMP_CWORD": "2"}

    completed = unreadable.iterdev(**typed)

    assert completed.stdout.split() == [f"plain,{unreadable.folder().name}"]
    assert list((unreadable.path / ".workflow").glob("*damaged*")) == []
