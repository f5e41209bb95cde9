"""iterdev issue list."""

import click

from iterdev.app.issues import show
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import brief, issue_line, one_line, statuses
from iterdev.surfaces.cli.output.console import print_either


@click.command("list", help="List the issues that are not completed; with ID, the tasks of its bound solution")
@click.argument("name", metavar="[ID]", required=False)
@statuses
@brief
@arguments.as_json
def command(*, name: str | None, statuses: str, brief: bool, as_json: bool) -> None:
    repository = arguments.repository_of_caller()
    if name:
        seen = show.issue_view(repository, name)
        print_either(_task_lines(seen), show.issue_tasks_document(seen), as_json=as_json)
        return
    found = show.issue_list(repository, statuses)
    print_either(_issue_lines(found), show.issue_list_document(found, is_brief=brief), as_json=brief or as_json)


def _issue_lines(found: show.IssueList) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in found.counts.items() if count)
    if not counts:
        return 'No issues. Create one with: iterdev issue create --title "..."'
    return "\n".join([*map(issue_line, found.issues), counts])


def _task_lines(seen: show.IssueView) -> str:
    tasks = [f"{task.id}  {one_line(task.title)}" for task in seen.bound.tasks] if seen.bound else []
    return "\n".join([issue_line(seen.issue), *(tasks or ["No solution with tasks is bound."])])
