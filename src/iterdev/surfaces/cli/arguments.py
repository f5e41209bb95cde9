"""Options and arguments that several commands share, and how they are read."""

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import click

from iterdev.app import sessions
from iterdev.app.sessions import Repository
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId

Decorated = TypeVar("Decorated", bound=Callable[..., object])
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


class SelectedSession(NamedTuple):
    repository: Repository
    id: SessionId


class SelectedTask(NamedTuple):
    repository: Repository
    id: SessionId
    task: str
    """Empty for the whole session."""


class SessionText(NamedTuple):
    repository: Repository
    id: SessionId
    text: str


def current_repository(*, here: bool = False) -> Repository:
    """With `here`, attempts run on this machine."""
    repository = Repository(Path.cwd())
    repository.stays_here = here
    return repository


def repository_of_caller() -> Repository:
    """The repository of the current directory; inside of an attempt, that of its session."""
    return sessions.repository_of_attempt(os.environ) or current_repository()


def _complete_session(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in sessions.session_ids(Path.cwd()) if name.startswith(incomplete)]


_OPTION = "iterdev.session_id"
"""Where the value of --session-id is kept until the words are read."""


def _session_words(name: str, read: Callable[[str | None, Sequence[str]], object], metavar: str) -> Decorator:
    """Words of which the first may name a session, and the option --session-id, which may name it instead.

    Arguments that follow get the last words, so that a single one is theirs.
    """

    def keep(context: click.Context, _parameter: click.Parameter, named: str | None) -> None:
        context.meta[_OPTION] = named

    def value(context: click.Context, _parameter: click.Parameter, words: tuple[str, ...]) -> object:
        return None if context.resilient_parsing else read(context.meta[_OPTION], words)

    option = click.option(
        "--session-id",
        metavar="ID",
        is_eager=True,
        expose_value=False,
        callback=keep,
        shell_complete=_complete_session,
        help="The session, instead of SESSION",
    )
    argument = click.argument(name, nargs=-1, metavar=metavar, callback=value, shell_complete=_complete_session)
    return lambda command: argument(option(command))


def _only_name(named: str | None, words: Sequence[str]) -> str | None:
    """The session that is named once, by either of the two."""
    given = [*words, *([named] if named else [])]
    if len(given) > 1:
        why = f'"{given[0]}" and "{given[1]}" both name a session' if named else f'"{given[1]}" is one word too many'
        raise click.UsageError(why, click.get_current_context())
    return given[0] if given else None


def _session(opened: Callable[[], Repository], find: Callable[[Repository, str | None], SessionId]) -> Decorator:
    def read(named: str | None, words: Sequence[str]) -> SelectedSession:
        name, repository = _only_name(named, words), opened()
        return SelectedSession(repository, find(repository, name))

    return _session_words("session", read, "[SESSION]")


def _task(named: str | None, words: Sequence[str]) -> SelectedTask:
    repository = current_repository()
    if named:
        return SelectedTask(repository, repository.find(named), _only_name(None, words) or "")
    return SelectedTask(repository, *sessions.before_task(repository, words))


def _text(named: str | None, words: Sequence[str]) -> SessionText:
    repository = repository_of_caller()
    if named:
        return SessionText(repository, repository.find(named), " ".join(words))
    return SessionText(repository, *sessions.before_text(repository, words))


session = _session(current_repository, sessions.named_or_last_active)
"""Without it, the session that was last active is meant."""
finished_session = _session(current_repository, sessions.named_or_last_finished)
session_of_caller = _session(repository_of_caller, sessions.named_or_last_active)
session_name = _session_words("session", _only_name, "[SESSION]")
"""Only the name, for commands that find the session in another way."""
session_and_task = _session_words("selected", _task, "[SESSION] [TASK]")
session_and_text = _session_words("given", _text, "[SESSION] TEXT...")
person_task = click.option("--task", metavar="TASK", help="The task, such as DEV-001; not in an attempt")
yes = click.option("-y", "--yes", is_flag=True, help="Ask nothing; answer questions with their defaults")
detach = click.option("--detach", is_flag=True, help="Run in the background: print the session's id, and return")
here = click.option("--here", is_flag=True, help="Run the agents on this machine, not on the hosts of [remote]")
text_file = click.option(
    "--file", type=click.Path(path_type=Path), metavar="PATH", help="Read TEXT from a file; - is standard input"
)
engine = click.option(
    "--engine",
    type=click.Choice(["wave", "beat"]),
    default="wave",
    help="wave (default): one depth after another; beat: whatever is ready",
)
as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else")


def one_of(name: str, words: Iterable[str], text: str, default: str | None = None) -> Callable[[Decorated], Decorated]:
    return click.option(name, type=click.Choice(list(words)), default=default, show_default=True, help=text)


def _no_number(name: str) -> object:
    raise ValueError(f"{name} is not a number of JSON")


def read_document(text: str, example: str) -> object:
    """A JSON document; `-` reads it from standard input."""
    body = sys.stdin.read() if text == "-" else text
    try:
        return json.loads(body, parse_constant=_no_number)
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
