"""iterdev issue solution."""

import click

from iterdev.app.issues import edit, show
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import brief, solution_line, to_change
from iterdev.surfaces.cli.output.console import print_either


@click.command("solution", help="Show the solutions of an issue; with --data, add one")
@click.argument("name", metavar="ID")
@click.option("--solution-id", metavar="SOL", default="", help="Only this one")
@click.option("--data", metavar="JSON", help="A new solution as a JSON object; - reads it from standard input")
@brief
@arguments.as_json
def command(*, name: str, solution_id: str, data: str | None, brief: bool, as_json: bool) -> None:
    if data is not None:
        issue, added = edit.add_solution(to_change(), name, arguments.read_document(data, edit.SOLUTION_EXAMPLE))
        text = f"{solution_line(issue, added)}\nBind it with: iterdev issue bind {name} {added.id}"
        print_either(text, show.solution_document(issue, added), as_json=as_json)
        return
    found = show.solutions(arguments.repository_of_caller(), name, solution_id)
    text = "\n".join(solution_line(*one) for one in found) or f"{name} has no solution."
    documents = [show.solution_document(*one, is_brief=brief) for one in found]
    document = {"issue_id": name, "solutions": documents, "total": len(found)}
    print_either(text, document, as_json=brief or as_json)
