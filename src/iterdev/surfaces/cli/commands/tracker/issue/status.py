"""iterdev issue status."""

import click

from iterdev.app.issues import show
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import issue_line, solution_line
from iterdev.surfaces.cli.commands.tracker.issue.queue import print_queue
from iterdev.surfaces.cli.output.console import local_time, print_either


@click.command("status", help="Show an issue with its solutions; without ID, the active queue")
@click.argument("name", metavar="[ID]", required=False)
@arguments.as_json
def command(*, name: str | None, as_json: bool) -> None:
    repository = arguments.repository_of_caller()
    if name is None:
        print_queue(show.queue(repository), as_json=as_json)
        return
    found = show.issue_status(repository, name)
    print_either(_text(found), found, as_json=as_json)


def _text(found: show.Document) -> str:
    match found:
        case {"issue": dict(issue), "solutions": list(solutions)}:
            feedback = [f"  {one['type']} ({one['stage']}): {one['content']}" for one in issue["feedback"]]
            parts = [
                issue_line(issue),
                f"Created {local_time(issue['created_at'])}, changed {local_time(issue['updated_at'])}",
                *(f"Source: {issue['source_url']}" for _ in [0] if issue.get("source_url")),
                *(f"Tags: {', '.join(issue['tags'])}" for _ in [0] if issue["tags"]),
                *(["", issue["context"]] if issue["context"] else []),
                *(["", "Feedback:", *feedback] if feedback else []),
                *(["", "Solutions:", *(f"  {solution_line(one)}" for one in solutions)] if solutions else []),
            ]
            return "\n".join(parts)
        case _:
            return ""
