"""iterdev logs."""

import click

from iterdev.app import logs as app_logs
from iterdev.core.errors import UserError
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_document, print_text


@click.command(help="Show what the engine of a session did and what its agents said")
@arguments.session_and_task
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines while the engine runs")
@arguments.as_json
def logs(*, selected: arguments.SelectedTask, follow: bool, as_json: bool) -> None:
    if as_json and follow:
        raise UserError("--json prints one document, which --follow would never end", hint="omit one of them")
    if as_json:
        print_document({"session": selected.id, "lines": app_logs.log_lines(*selected)})
        return
    lines = app_logs.follow_logs if follow else app_logs.log_lines
    for line in lines(*selected):
        print_text(f"{line.source} | {line.text}")
