"""iterdev answer."""

import click

from iterdev.app import answer as app_answer
from iterdev.core.views.session import session_document
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either
from iterdev.surfaces.cli.output.text import completion_text


@click.command(help="Answer an open question of a session")
@arguments.session
@click.argument("gate")
@click.argument("choice")
@arguments.as_json
def answer(*, session: arguments.SelectedSession, gate: str, choice: str, as_json: bool) -> None:
    answered = app_answer.answer(*session, gate, choice)
    print_either(_text(answered, gate), session_document(answered.view), as_json=as_json)


def _text(answered: app_answer.Answered, gate: str) -> str:
    view = answered.view
    if gate == app_answer.GateKind.completion:
        return completion_text(view)
    if answered.restarted:
        return f"{gate}: {answered.choice}\nIt continues in the background; follow it with: iterdev follow {view.id}"
    return f"{gate}: {answered.choice}" + ("" if view.running else f"\nContinue with: iterdev resume {view.id}")
