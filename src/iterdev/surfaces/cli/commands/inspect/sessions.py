"""iterdev sessions."""

import click

from iterdev.app import inspect
from iterdev.core.views.session import session_document
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_document, print_text


@click.command(help="List every session of this repository")
@arguments.as_json
def sessions(*, as_json: bool) -> None:
    repository = arguments.current_repository()
    if as_json:
        views = (inspect.status(repository, session) for session in repository.sessions())
        print_document({"sessions": list(map(session_document, views))})
        return
    lines = list(inspect.summaries(repository))
    if not lines:
        print_text('No sessions yet. Start one with: iterdev run "Add a greeting"')
    for line in lines:
        one, done = line.summary, f"{line.summary.completed}/{line.summary.tasks}"
        print_text(f"{one.id}  {line.standing}  {done}  {' '.join(one.requirement.split())[:120]}")
