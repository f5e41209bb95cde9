"""iterdev issue bind."""

from pathlib import Path

import click

from iterdev.app.issues import edit, show
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import solution_line, to_change
from iterdev.surfaces.cli.output.console import print_either


@click.command("bind", help="Choose the solution of an issue; without SOL, list the candidates")
@click.argument("name", metavar="ID")
@click.argument("solution", metavar="[SOL]", required=False)
@click.option(
    "--solution",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Add the solution in a JSON file first",
)
@arguments.as_json
def command(*, name: str, solution: str | None, file: Path | None, as_json: bool) -> None:
    if solution is None and file is None:
        found = show.solutions(arguments.current_repository(), name)
        empty = f"{name} has no solution. Add one with: iterdev issue solution {name} --data JSON"
        text = "\n".join(solution_line(*one) for one in found) or empty
        documents = [show.solution_document(*one) for one in found]
        print_either(text, {"solutions": documents, "total": len(found)}, as_json=as_json)
        return
    issue, bound = edit.bind(to_change(), name, solution or "", file)
    print_either(f"{bound.id} is bound to {name}", show.solution_document(issue, bound), as_json=as_json)
