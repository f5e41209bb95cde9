"""iterdev status."""

import json
from pathlib import Path

import click

from iterdev.engine.repository import Repository
from iterdev.surfaces.cli.output.text import as_document, status_text


def status(*, session: str | None, as_json: bool) -> int:
    repository = Repository(Path.cwd())
    state = repository.state(repository.find(session) if session else repository.newest())
    alive = repository.engine_alive(state)
    if as_json:
        click.echo(json.dumps(as_document(state, engine_alive=alive), ensure_ascii=False))
    else:
        click.echo(status_text(state, engine_alive=alive))
    return 0
