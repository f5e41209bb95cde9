"""Options and arguments that several commands share, and how they are read."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import click

from iterdev.app import sessions
from iterdev.app.sessions import Repository
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId

Decorated = TypeVar("Decorated", bound=Callable[..., object])


class SelectedSession(NamedTuple):
    repository: Repository
    id: SessionId


def current_repository() -> Repository:
    return Repository(Path.cwd())


def repository_of_caller() -> Repository:
    """The repository of the current directory; inside of an attempt, that of its session."""
    return sessions.repository_of_attempt(os.environ) or current_repository()


def _select(
    opened: Callable[[], Repository], _context: click.Context, _parameter: click.Parameter, name: str | None
) -> SelectedSession:
    repository = opened()
    return SelectedSession(repository, sessions.named_or_newest(repository, name))


def _complete_session(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in sessions.session_ids(Path.cwd()) if name.startswith(incomplete)]


_session = partial(click.argument, "session", shell_complete=_complete_session)
_session_id = partial(click.option, "--session-id", metavar="ID", shell_complete=_complete_session)

session = _session(callback=partial(_select, current_repository))
any_session = _session(required=False, callback=partial(_select, current_repository))
"""Without it, the newest session is meant."""
session_name = _session(required=False)
session_id = _session_id(required=True, callback=partial(_select, repository_of_caller), help="The session")
newest_session_id = _session_id(callback=partial(_select, repository_of_caller), help="The session  [default: newest]")
found_session_id = _session_id(help="The session  [default: found]")
person_session_id = _session_id(help="The session; not in an attempt")
person_task = click.option("--task", metavar="TASK", help="The task, such as DEV-001; not in an attempt")
yes = click.option("-y", "--yes", is_flag=True, help="Ask nothing, use the defaults")
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else")


def one_of(name: str, words: Iterable[str], text: str, default: str | None = None) -> Callable[[Decorated], Decorated]:
    return click.option(name, type=click.Choice(list(words)), default=default, show_default=True, help=text)


def read_document(text: str, example: str) -> object:
    """A JSON document; `-` reads it from standard input."""
    body = sys.stdin.read() if text == "-" else text
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UserError(f'"{body[:80]}" is not JSON: {error}', hint=f"--data '{example}'") from error


def call_tool(
    tool: str, given: Mapping[str, object], *, session: str | None, team: str = "", sender: str = ""
) -> dict[str, object]:
    """The answer of a tool of the team to those arguments that are given."""
    from iterdev.app import team_tools  # noqa: PLC0415 - it loads the engine, which most commands do not need

    arguments = {key: value for key, value in given.items() if value is not None}
    try:
        return team_tools.call(tool, arguments, os.environ, Path.cwd(), session=session, team=team, sender=sender)
    except team_tools.CallRejected as rejection:
        hint = f"{click.get_current_context().command_path} --help"
        raise UserError(str(rejection), hint=hint) from rejection
