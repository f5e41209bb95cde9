"""iterdev issue solutions."""

import click

from iterdev.app.issues import show
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import brief, solution_line, statuses
from iterdev.surfaces.cli.output.console import print_either


@click.command("solutions", help="List the bound solutions of all issues, or of those that are named")
@click.argument("names", nargs=-1, metavar="[ID]...")
@statuses
@brief
@arguments.as_json
def command(*, names: tuple[str, ...], statuses: str, brief: bool, as_json: bool) -> None:
    found = show.bound_solutions(arguments.repository_of_caller(), names, statuses)
    text = "\n".join(solution_line(*one) for one in found) or "No solution is bound."
    documents = [show.solution_document(*one, is_brief=brief) for one in found]
    print_either(text, {"solutions": documents, "total": len(found)}, as_json=brief or as_json)
