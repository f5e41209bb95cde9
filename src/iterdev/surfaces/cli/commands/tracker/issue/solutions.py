"""iterdev issue solutions."""

import click

from iterdev.app.issues import show
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.commands.tracker.issue.options import brief, listed, solution_line, statuses
from iterdev.surfaces.cli.output.console import print_document, print_text


@click.command("solutions", help="List the bound solutions of all issues, or of those that are named")
@click.argument("names", nargs=-1, metavar="[ID]...")
@statuses
@brief
@arguments.as_json
def command(*, names: tuple[str, ...], statuses: str, brief: bool, as_json: bool) -> None:
    found = show.bound_solutions(arguments.repository_of_caller(), names, statuses, is_brief=brief)
    if brief or as_json:
        print_document({"solutions": found, "total": len(found)})
        return
    print_text(listed(found, "No solution is bound.", solution_line))
