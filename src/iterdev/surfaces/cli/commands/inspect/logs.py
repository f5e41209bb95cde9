"""iterdev logs."""

import click

from iterdev.app import logs as app_logs
from iterdev.surfaces.cli import arguments


@click.command(help="Show what the engine of a session did and what its agents said")
@arguments.any_session
@click.argument("task", required=False, default="")
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines as long as the engine runs")
def logs(*, session: arguments.SelectedSession, task: str, follow: bool) -> None:
    lines = app_logs.follow_logs if follow else app_logs.log_lines
    for line in lines(*session, task):
        click.echo(f"{line.source} | {line.text}")
