"""iterdev why."""

from pathlib import Path

import click

from iterdev.core.errors import UserError
from iterdev.core.types import TaskId
from iterdev.core.views import session as session_view
from iterdev.engine.repository import Repository


def why(*, session: str, task: str) -> int:
    repository = Repository(Path.cwd())
    state = repository.state(repository.find(session))
    if task not in state.tasks:
        raise UserError(f'There is no task "{task}" in {state.session.id}', hint=f"iterdev status {state.session.id}")
    for line in session_view.why(state, TaskId(task), engine_alive=repository.engine_alive(state)):
        click.echo(line)
    return 0
