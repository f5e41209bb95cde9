"""iterdev diff."""

import click

from iterdev.app.branches import diff as app_diff
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output import prompt
from iterdev.surfaces.cli.output.console import print_document


@click.command(help="Show the change of a session, of a task or of a fix round, as git diff does")
@arguments.any_session
@click.argument("task", required=False, default="")
@click.option("--stat", is_flag=True, help="Only the files, and how much of each was changed")
@click.option("--round", "round_", type=int, metavar="N", help="The change of a fix round")
@arguments.as_json
def diff(*, session: arguments.SelectedSession, task: str, stat: bool, round_: int | None, as_json: bool) -> None:
    change = app_diff.change_of(*session, task, round_)
    if as_json:
        print_document(app_diff.diff(*session, change))
        return
    app_diff.show(session.repository, change, stat=stat, plain=not prompt.is_terminal())
