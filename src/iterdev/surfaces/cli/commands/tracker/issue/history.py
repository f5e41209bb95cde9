"""iterdev issue history."""

import click

from iterdev.app.issues import show
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import brief, listed, one_line
from iterdev.surfaces.cli.output.console import local_time, print_document, print_text


@click.command("history", help="List the completed issues, the newest last")
@brief
@arguments.as_json
def command(*, brief: bool, as_json: bool) -> None:
    found = show.history(arguments.repository_of_caller(), is_brief=brief)
    if brief or as_json:
        print_document({"issues": found, "total": len(found)})
        return
    print_text(listed(found, "No issue is completed.", _line))


def _line(issue: show.Document) -> str:
    return f"{issue['id']}  {local_time(issue['completed_at'])}  {one_line(issue['title'])}"
