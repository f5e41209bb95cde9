"""iterdev demo: a whole sprint on a bundled sample, with a scripted team and a planted defect."""

import shlex
import shutil
import sys
from pathlib import Path

import click

from iterdev.app import demo as app_demo
from iterdev.app.sessions import Repository
from iterdev.core.types import SessionId
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.session_run import show_run


@click.command(help="Run a whole sprint on a bundled sample, with no model and no key")
def demo() -> ExitCode:
    """0 only if the planted defect was found and fixed, and the fixed work landed."""
    repository = app_demo.create_repository()
    click.echo(
        f'A scripted team gets a small project in {repository.top} and the request "{app_demo.REQUIREMENT}".\n'
        "No model is asked and no key is needed; git, the worktrees, the test runs and the landing are real.\n"
        f"{app_demo.DEFECT}\n"
    )
    session = app_demo.start_session(repository)
    code = show_run(repository, session)
    if code:
        click.echo(f"The scratch repository is kept: cd {shlex.quote(str(repository.top))}")
        return code
    click.echo(_closing(repository, session))
    if app_demo.found_and_fixed(repository, session):
        return ExitCode.finished
    click.echo("The demo did not go as it should: the planted defect was not both found and fixed.", err=True)
    return ExitCode.unfinished


def _closing(repository: Repository, session: SessionId) -> str:
    branch, log = app_demo.branch_log(repository, session)
    return (
        f"\n{app_demo.short_report(repository, session)}\n"
        f"$ git log --oneline {branch}\n{log}\n"
        "Your turn; main is as it was until you accept:\n"
        f"{_next_commands(repository.top)}"
    )


def _next_commands(top: Path) -> str:
    """Lines that can be pasted, also when iterdev was started by its path."""
    commands = [f"cd {shlex.quote(str(top))}", "iterdev status", "iterdev report", "iterdev accept", "git log --stat"]
    if shutil.which("iterdev") is None:
        commands.insert(0, f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"')
    return "\n".join(f"  {command}" for command in commands)
