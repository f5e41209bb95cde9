"""iterdev issue create."""

import sys

import click

from iterdev.app.issues import edit
from iterdev.app.issues.edit import ISSUE_EXAMPLE, IssueFields
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import described, print_issue, to_change


@click.command("create", help="Create an issue; it gets an id if it has none")
@click.option("--data", metavar="JSON", help="The issue as a JSON object; - reads it from standard input")
@described
@arguments.as_json
def command(*, data: str | None, as_json: bool, fields: IssueFields) -> None:
    # Without any option the object is expected on standard input.
    given = data or ("-" if fields == IssueFields() and not sys.stdin.isatty() else "{}")
    document = arguments.read_document(given, ISSUE_EXAMPLE)
    print_issue(edit.create(to_change(), document, fields), as_json=as_json)
