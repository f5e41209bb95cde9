"""iterdev diff."""

import click

from iterdev.app.branches import diff as app_diff
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output import prompt
from iterdev.surfaces.cli.output.console import print_document


@click.command(help="Show the change of a session, of a task or of a fix round, as git diff does")
@arguments.session_and_task
@click.option("--stat", is_flag=True, help="Only list the changed files, and how much of each was changed")
@click.option("--round", "round_", type=int, metavar="N", help="Show the change of fix round N")
@arguments.as_json
def diff(*, selected: arguments.SelectedTask, stat: bool, round_: int | None, as_json: bool) -> None:
    change = app_diff.change_of(*selected, round_)
    if as_json:
        print_document(app_diff.diff(selected.repository, selected.id, change))
        return
    app_diff.show(selected.repository, change, stat=stat, plain=not prompt.is_terminal())
