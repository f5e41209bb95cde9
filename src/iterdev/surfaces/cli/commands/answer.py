"""iterdev answer."""

import click

from iterdev.app import answer as app_answer
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output.text import completion_text


@click.command(help="Answer an open question of a session")
@arguments.session
@click.argument("gate")
@click.argument("choice")
def answer(*, session: str, gate: str, choice: str) -> ExitCode:
    repository = arguments.current_repository()
    view = app_answer.answer(repository, repository.find(session), gate, choice)
    if view.outcome.is_finished:
        click.echo(completion_text(view))
        return ExitCode.finished
    click.echo(f"{gate}: {choice}")
    if not view.running:
        click.echo(f"Go on with: iterdev resume {view.id}")
    return ExitCode.finished
