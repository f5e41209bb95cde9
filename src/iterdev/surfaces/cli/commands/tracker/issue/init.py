"""iterdev issue init."""

import click

from iterdev.app.issues import edit
from iterdev.app.issues.edit import IssueFields
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import described, print_issue, to_change


@click.command("init", help="Create an issue with the id ID")
@click.argument("name", metavar="ID")
@described
@click.option("--force", is_flag=True, help="Replace an issue with the same id; its solutions are kept")
@arguments.as_json
def command(*, name: str, force: bool, as_json: bool, fields: IssueFields) -> None:
    print_issue(edit.init(to_change(), name, fields, force=force), as_json=as_json)
