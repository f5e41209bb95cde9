"""Options that the commands of the tracker share, and how they print."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from iterdev.app.issues.edit import Issue, IssueFields, Solution, take_over_files
from iterdev.app.issues.show import issue_document
from iterdev.app.sessions import Repository
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either, print_warning

brief = click.option("--brief", is_flag=True, help="Print only a few fields of each, as JSON")
statuses = click.option("--status", "statuses", metavar="A,B", default="", help="Only those with one of these statuses")
queue_option = click.option("--queue", metavar="QUEUE", default="", help="The queue  [default: the active one]")


def to_change() -> Repository:
    """The repository whose tracker is changed; what of its folder could not be taken over is said."""
    repository = arguments.repository_of_caller()
    for note in take_over_files(repository):
        print_warning(note)
    return repository


def described(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that describe an issue, as one value `fields`."""

    @click.option("--title", metavar="TEXT", help="The issue in one line")
    @click.option("--description", metavar="TEXT", help="The problem in full")
    @click.option("--priority", type=int, metavar="N", help="From 1 to 5, which is the most urgent  [default: 3]")
    @wraps(command)
    def with_fields(
        title: str | None, description: str | None, priority: int | None, status: str | None = None, **rest: object
    ) -> object:
        fields = IssueFields(title=title, description=description, priority=priority, status=status)
        return command(fields=fields, **rest)

    return with_fields


def print_issue(issue: Issue, *, as_json: bool) -> None:
    print_either(issue_line(issue), issue_document(issue), as_json=as_json)


def issue_line(issue: Issue) -> str:
    said = issue.description
    return f"{issue.id}  {issue.status:<10}  {said.priority}  {one_line(said.title)}"


def solution_line(issue: Issue, solution: Solution) -> str:
    mark = "bound" if solution.id == issue.bound_solution_id else "     "
    text = one_line(solution.description or solution.approach)
    return f"{solution.id}  {mark}  tasks: {len(solution.tasks)}  {text}"


def one_line(text: str) -> str:
    return " ".join(text.split())[:120]
