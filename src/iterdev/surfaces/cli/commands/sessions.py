"""iterdev sessions."""

import json
from pathlib import Path

import click

from iterdev.core.types import Status
from iterdev.engine.repository import Repository
from iterdev.surfaces.cli.output.text import as_document


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
