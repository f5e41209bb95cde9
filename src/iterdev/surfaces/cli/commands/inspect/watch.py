"""iterdev watch."""

import os
import sys
from collections.abc import Mapping
from importlib.util import find_spec

import click

from iterdev.app.sessions import Repository, named_or_last_active
from iterdev.core.types import SessionId
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.inspect.follow import follow_as_document, follow_lines
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.extras import install_command
from iterdev.surfaces.cli.output import prompt
from iterdev.surfaces.cli.output.console import print_warning


@click.command(help="Watch sessions in a dashboard: tasks, output, changes; answer, accept, retry, roll back")
@arguments.session_name
@arguments.as_json
def watch(*, session: str | None, as_json: bool) -> ExitCode:
    repository = arguments.current_repository()
    if as_json:
        return follow_as_document(_followed(repository, session))
    # Textual writes to standard error, so that one has to be a terminal too.
    is_terminal = prompt.can_ask() and sys.stderr.isatty()
    if why := unable(os.environ, is_terminal=is_terminal, has_textual=find_spec("textual") is not None):
        followed = _followed(repository, session)
        print_warning(f"{why}. For plain lines: iterdev follow {followed.id}")
        return follow_lines(followed)
    from iterdev.surfaces.tui.run import run  # noqa: PLC0415 - textual takes half a second to load

    run(repository, _watched(repository, session))
    return ExitCode.finished


def unable(environment: Mapping[str, str], *, is_terminal: bool, has_textual: bool) -> str:
    """Why there can be no dashboard here, in a few words; empty if there can."""
    if not is_terminal:
        return "This is not a terminal"
    for name in ("NO_COLOR", "CI"):
        if environment.get(name):
            return f"{name} is set"
    if environment.get("TERM", "dumb") == "dumb":
        return "This terminal cannot place text (TERM is dumb)"
    if has_textual:
        return ""
    return f"The dashboard needs textual, which is not installed; hint: {install_command('watch')}"


def _followed(repository: Repository, name: str | None) -> arguments.SelectedSession:
    return arguments.SelectedSession(repository, named_or_last_active(repository, name))


def _watched(repository: Repository, name: str | None) -> SessionId | None:
    """Without a name the one that was last active; a repository without sessions can be watched too."""
    return named_or_last_active(repository, name) if name or repository.sessions() else None
