"""iterdev issue solution."""

import click

from iterdev.app.issues import edit, show
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import brief, listed, solution_line, to_change
from iterdev.surfaces.cli.output.console import print_document, print_either


@click.command("solution", help="Show the solutions of an issue; with --data, add one")
@click.argument("name", metavar="ID")
@click.option("--solution-id", metavar="SOL", default="", help="Only this one")
@click.option("--data", metavar="JSON", help="A new solution as a JSON object; - reads it from standard input")
@brief
@arguments.as_json
def command(*, name: str, solution_id: str, data: str | None, brief: bool, as_json: bool) -> None:
    repository = arguments.repository_of_caller()
    if data is not None:
        added = edit.add_solution(to_change(), name, arguments.read_document(data, edit.SOLUTION_EXAMPLE))
        print_either(
            f"{solution_line(added)}\nBind it with: iterdev issue bind {name} {added['id']}", added, as_json=as_json
        )
        return
    found = show.solutions(repository, name, solution_id, is_brief=brief)
    if brief or as_json:
        print_document({"issue_id": name, "solutions": found, "total": len(found)})
        return
    print_either(listed(found, f"{name} has no solution.", solution_line), found, as_json=False)
