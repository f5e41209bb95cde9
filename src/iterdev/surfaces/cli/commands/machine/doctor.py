"""iterdev doctor."""

from pathlib import Path

import click

from iterdev.app.doctor import findings
from iterdev.surfaces.cli.exit_codes import ExitCode


@click.command(help="Check the machine, the repository and the state, and say how to fix them")
def doctor() -> ExitCode:
    code = ExitCode.finished
    for finding in findings(Path.cwd()):
        if not finding.problem:
            click.echo(f"ok {finding.subject}")
            continue
        code = ExitCode.unfinished
        click.echo(f"!! {finding.subject}: {finding.problem}")
        if finding.hint:
            click.echo(f"   hint: {finding.hint}")
    return code
