"""status, sessions, why and report: the commands that only look."""

import json
from pathlib import Path

import click

from iterdev.core import report as reports
from iterdev.core import view
from iterdev.core.errors import UserError
from iterdev.core.words import Status, TaskId
from iterdev.engine.repository import Repository
from iterdev.surfaces.cli.pictures import as_document, status_text


def status(*, session: str | None, as_json: bool) -> int:
    repository = Repository(Path.cwd())
    state = repository.state(repository.find(session) if session else repository.newest())
    alive = repository.engine_alive(state)
    if as_json:
        click.echo(json.dumps(as_document(state, engine_alive=alive), ensure_ascii=False))
    else:
        click.echo(status_text(state, engine_alive=alive))
    return 0


def sessions(*, as_json: bool) -> int:
    repository = Repository(Path.cwd())
    states = [repository.state(session) for session in repository.sessions()]
    if as_json:
        documents = [as_document(state, engine_alive=repository.engine_alive(state)) for state in states]
        click.echo(json.dumps({"sessions": documents}, ensure_ascii=False))
        return 0
    if not states:
        click.echo('No sessions yet. Start one with: iterdev run "Add a greeting"')
    for state in states:
        done = f"{state.count(Status.completed)}/{len(state.tasks)}"
        standing = "running" if repository.engine_alive(state) else state.phase.value
        requirement = " ".join(state.session.requirement.split())[:120]
        click.echo(f"{state.session.id}  {standing:<9}  {done:>5}  {requirement}")
    return 0


def why(*, session: str, task: str) -> int:
    repository = Repository(Path.cwd())
    state = repository.state(repository.find(session))
    if task not in state.tasks:
        raise UserError(f'There is no task "{task}" in {state.session.id}', hint=f"iterdev status {state.session.id}")
    for line in view.why(state, TaskId(task), engine_alive=repository.engine_alive(state)):
        click.echo(line)
    return 0


def report(*, session: str | None) -> int:
    repository = Repository(Path.cwd())
    state = repository.state(repository.find(session) if session else repository.newest())
    click.echo(reports.report(state), nl=False)
    return 0
