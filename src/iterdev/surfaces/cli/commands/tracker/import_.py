"""iterdev import. The name alone is a word of Python's own."""

from pathlib import Path

import click

from iterdev.app.issues.imports import Imported, import_file
from iterdev.core.formatting import counted
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either


@click.command("import", help="Import issues or a task table from another tool's FILE")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@arguments.as_json
def import_(*, file: Path, as_json: bool) -> None:
    """Issues.jsonl of beads, tasks.json of task-master, tasks.md of spec-kit, tasks.csv of Claude-Code-Workflow."""
    imported = import_file(arguments.current_repository(), file)
    print_either(_text(imported), imported, as_json=as_json)


def _text(imported: Imported) -> str:
    if imported.table:
        done = [f"{counted(imported.tasks, 'task')} of {imported.tool}: iterdev run --tasks {imported.table}"]
    else:
        done = [
            f"Issues of {imported.tool}",
            f"Added: {', '.join(imported.added) or 'none'}",
            f"Updated: {', '.join(imported.updated) or 'none'}",
            f"Unchanged: {len(imported.unchanged)}",
        ]
    return "\n".join([*done, *(f"Not carried over: {note}" for note in imported.notes)])
