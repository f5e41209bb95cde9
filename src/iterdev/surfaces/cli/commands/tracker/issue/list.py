"""iterdev issue list."""

import click

from iterdev.app.issues import show
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import brief, issue_line, listed, one_line, statuses
from iterdev.surfaces.cli.output.console import print_document, print_either


@click.command("list", help="List the issues that are not completed; with ID, the tasks of its bound solution")
@click.argument("name", metavar="[ID]", required=False)
@statuses
@brief
@arguments.as_json
def command(*, name: str | None, statuses: str, brief: bool, as_json: bool) -> None:
    repository = arguments.repository_of_caller()
    if name:
        tasks = show.issue_tasks(repository, name)
        print_either(_task_lines(tasks), tasks, as_json=as_json)
        return
    found = show.issue_list(repository, statuses, is_brief=brief)
    if brief or as_json:
        print_document(found)
        return
    print_either(_issue_lines(found), found, as_json=False)


def _issue_lines(found: show.Document) -> str:
    match found:
        case {"issues": list(issues), "summary": dict(counts)}:
            numbers = ", ".join(f"{count} {status}" for status, count in counts.items() if count)
            empty = (
                "No matching issues." if numbers else 'No issues. Create one with: iterdev issue create --title "..."'
            )
            return "\n".join(filter(None, [listed(issues, empty, issue_line), numbers]))
        case _:
            return ""


def _task_lines(found: show.Document) -> str:
    match found:
        case {"tasks": list(tasks), "issue": dict(issue)}:
            lines = listed(
                tasks, "No solution with tasks is bound.", lambda task: f"{task['id']}  {one_line(task['title'])}"
            )
            return f"{issue_line(issue)}\n{lines}"
        case _:
            return ""
