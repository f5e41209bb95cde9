"""iterdev answer."""

from pathlib import Path

import click

from iterdev.core.errors import UserError
from iterdev.core.session import archive
from iterdev.core.session.events import GateAnswered
from iterdev.engine.repository import Repository
from iterdev.host import clock
from iterdev.store.session_log import SessionLog
from iterdev.surfaces.cli.commands import archive as commands_archive


def answer(*, session: str, gate: str, choice: str) -> int:
    repository = Repository(Path.cwd())
    log = SessionLog(repository.journal, repository.find(session), now=clock.now)
    if gate == archive.GATE and log.state.is_finished:
        return commands_archive.answer(repository, log.session, choice)
    question = log.state.gates.get(gate)
    if question is None:
        asked = ", ".join(log.state.gates) or "none"
        raise UserError(f'"{gate}" is not an open question of {log.session}', hint=f"open questions: {asked}")
    if choice not in question.choices:
        raise UserError(f'"{choice}" is not an answer to "{gate}"', hint=f"one of: {', '.join(question.choices)}")
    log.record(GateAnswered(gate, choice))
    click.echo(f"{gate}: {choice}")
    if not repository.engine_alive(log.state):
        click.echo(f"Go on with: iterdev resume {log.session}")
    return 0
