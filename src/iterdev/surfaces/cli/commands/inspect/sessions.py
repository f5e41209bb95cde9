"""iterdev sessions."""

import shlex

import click

from iterdev.app import inspect
from iterdev.app.sessions import elsewhere
from iterdev.core.views.session import session_document
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_document, print_text


@click.command(help="List every session of this repository")
@arguments.as_json
def sessions(*, as_json: bool) -> None:
    repository = arguments.current_repository()
    if as_json:
        views = (inspect.status(repository, session) for session in repository.sessions())
        others = [str(top) for top in elsewhere(repository)]
        print_document({"sessions": list(map(session_document, views)), "elsewhere": others})
        return
    lines = list(inspect.summaries(repository))
    if not lines:
        print_text('No sessions yet. Start one with: iterdev run "Add a greeting"')
    for line in lines:
        one, done = line.summary, f"{line.summary.completed}/{line.summary.tasks}"
        print_text(f"{one.id}  {line.standing}  {done}  {' '.join(one.requirement.split())[:120]}")
    for top in elsewhere(repository):
        print_text(f"Another worktree has sessions of its own: cd {shlex.quote(str(top))}")
