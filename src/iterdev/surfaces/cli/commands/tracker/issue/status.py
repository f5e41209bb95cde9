"""iterdev issue status."""

from collections.abc import Iterator

import click

from iterdev.app.issues import show
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import issue_line, solution_line
from iterdev.surfaces.cli.commands.tracker.issue.queue import print_queue
from iterdev.surfaces.cli.output.console import local_moment, print_either


@click.command("status", help="Show an issue with its solutions; without ID, the active queue")
@click.argument("name", metavar="[ID]", required=False)
@arguments.as_json
def command(*, name: str | None, as_json: bool) -> None:
    repository = arguments.repository_of_caller()
    if name is None:
        print_queue(show.queue(repository), as_json=as_json)
        return
    seen = show.issue_view(repository, name)
    print_either("\n".join(_lines(seen)), show.issue_status_document(seen), as_json=as_json)


def _lines(seen: show.IssueView) -> Iterator[str]:
    issue, said = seen.issue, seen.issue.description
    yield issue_line(issue)
    yield f"Created {local_moment(issue.created_at)}, changed {local_moment(issue.updated_at)}"
    if said.source_url:
        yield f"Source: {said.source_url}"
    if said.tags:
        yield f"Tags: {', '.join(said.tags)}"
    if said.context:
        yield f"\n{said.context}"
    for comment in said.comments:
        yield f"\n{comment.author or 'unknown'} wrote:\n{comment.body}"
    if issue.feedback:
        yield "\nFeedback:"
    for one in issue.feedback:
        yield f"  {one.type} ({one.stage}): {one.content}"
    if seen.solutions:
        yield "\nSolutions:"
    for solution in seen.solutions:
        yield f"  {solution_line(issue, solution)}"
