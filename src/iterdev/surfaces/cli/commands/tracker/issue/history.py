"""iterdev issue history."""

import click

from iterdev.app.issues import show
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import brief, one_line
from iterdev.surfaces.cli.output.console import local_moment, print_either


@click.command("history", help="List the completed issues, the newest last")
@brief
@arguments.as_json
def command(*, brief: bool, as_json: bool) -> None:
    found = show.history(arguments.repository_of_caller())
    lines = (
        f"{issue.id}  {local_moment(issue.completed_at or 0)}  {one_line(issue.description.title)}" for issue in found
    )
    documents = [show.brief_history(issue) if brief else show.issue_document(issue) for issue in found]
    text = "\n".join(lines) or "No issue is completed."
    print_either(text, {"issues": documents, "total": len(found)}, as_json=brief or as_json)
