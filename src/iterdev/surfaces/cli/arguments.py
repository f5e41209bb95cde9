"""Options and arguments that several commands share, and how they are read."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from iterdev.app.sessions import Repository, open_repository, session_ids
from iterdev.core.errors import UserError

Decorated = TypeVar("Decorated", bound=Callable[..., object])
SESSION_DIR = "ITERDEV_SESSION_DIR"
SEVERITIES = click.Choice(["low", "medium", "high", "critical"])


def _complete_session(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in session_ids(Path.cwd()) if name.startswith(incomplete)]


session = click.argument("session", shell_complete=_complete_session)
any_session = click.argument("session", required=False, shell_complete=_complete_session)
"""Without it, the newest session is meant."""


def _session_id(text: str, *, required: bool = False) -> Callable[[Decorated], Decorated]:
    return click.option("--session-id", required=required, metavar="ID", shell_complete=_complete_session, help=text)


session_id = _session_id("The session", required=True)
newest_session_id = _session_id("The session  [default: newest]")
found_session_id = _session_id("The session  [default: found]")
person_session_id = _session_id("The session; not in an attempt")
person_task = click.option("--task", metavar="TASK", help="The task, such as DEV-001; not in an attempt")
yes = click.option("-y", "--yes", is_flag=True, help="Ask nothing, use the defaults")
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else")


def current_repository() -> Repository:
    """The repository of the current directory."""
    return open_repository(Path.cwd())


def repository_of_caller() -> Repository:
    """The repository of the current directory; an agent is in a worktree, and means that of its session."""
    folder = Path(os.environ.get(SESSION_DIR) or ".")
    return open_repository(folder if folder.is_dir() else Path.cwd())


def read_document(text: str, example: str) -> object:
    """A JSON document; `-` reads it from standard input."""
    body = sys.stdin.read() if text == "-" else text
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UserError(f'"{body[:80]}" is not JSON: {error}', hint=f"--data '{example}'") from error
