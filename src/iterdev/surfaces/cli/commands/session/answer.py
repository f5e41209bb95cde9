"""iterdev answer."""

import click

from iterdev.app import answer as app_answer
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.text import completion_text


@click.command(help="Answer an open question of a session")
@arguments.session
@click.argument("gate")
@click.argument("choice")
def answer(*, session: arguments.SelectedSession, gate: str, choice: str) -> None:
    view = app_answer.answer(*session, gate, choice)
    if gate == app_answer.GateKind.completion:
        click.echo(completion_text(view))
        return
    click.echo(f"{gate}: {choice}")
    if not view.running:
        click.echo(f"Go on with: iterdev resume {view.id}")
