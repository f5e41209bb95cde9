"""iterdev replay."""

import json

import click

from iterdev.app import replay as app_replay
from iterdev.core.views.replay import DifferenceView, RecordView, replay_document
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output.messages import print_document

WIDTH = 400
"""Characters of an event that are printed; `--json` has all of them."""


@click.command(help="Decide a session's journal again, and report the first difference")
@arguments.session
@arguments.as_json
def replay(*, session: str, as_json: bool) -> ExitCode:
    repository = arguments.current_repository()
    view = app_replay.replay(repository, repository.find(session))
    if as_json:
        print_document(replay_document(view))
    elif difference := view.difference:
        click.echo("\n".join([f"{view.session}: entry {difference.seq} was not decided", *_lines(difference)]))
    else:
        counted = f"{view.entries} entries, {view.decisions} of them decided"
        click.echo(f"{view.session}: {counted}; deciding again makes no difference")
    return ExitCode.unfinished if view.difference else ExitCode.finished


def _lines(difference: DifferenceView) -> list[str]:
    now = [_short(command) for command in difference.decided] or ["nothing"]
    return [f"  recorded then: {_short(difference.recorded)}", *(f"  decided now:   {text}" for text in now)]


def _short(record: RecordView) -> str:
    text = f"{record.kind} {json.dumps(record.fields, ensure_ascii=False)}"
    return text if len(text) <= WIDTH else f"{text[:WIDTH]}…"
