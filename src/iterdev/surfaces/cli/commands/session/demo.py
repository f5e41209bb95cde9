"""iterdev demo: a whole sprint on a bundled sample, with a scripted team and a planted defect."""

import shlex
import shutil
import sys
from pathlib import Path

import click

from iterdev.app import demo as app_demo
from iterdev.app.sessions import Repository
from iterdev.core.types import SessionId
from iterdev.core.views.session import session_document
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output.console import print_document, print_text, print_warning
from iterdev.surfaces.cli.session_run import exit_code, run_session, show_run


@click.command(help="Run a whole sprint on a bundled sample, with no model and no key")
@arguments.as_json
def demo(*, as_json: bool) -> ExitCode:
    """0 only if the planted defect was found and fixed, and the fixed work landed."""
    repository = app_demo.create_repository()
    if as_json:
        return _document(repository)
    print_text(
        f'A scripted team gets a small project in {repository.top} and the request "{app_demo.REQUIREMENT}".\n'
        "No model is asked and no key is needed; git, the worktrees, the test runs and the landing are real.\n"
        f"{app_demo.DEFECT}\n"
    )
    session = app_demo.start_session(repository)
    code = show_run(repository, session)
    if code:
        print_text(f"The scratch repository is kept: cd {shlex.quote(str(repository.top))}")
        return code
    print_text(_closing(repository, session))
    if app_demo.found_and_fixed(repository, session):
        return ExitCode.finished
    print_warning("The demo did not go as it should: the planted defect was not both found and fixed.")
    return ExitCode.unfinished


def _document(repository: Repository) -> ExitCode:
    session = app_demo.start_session(repository)
    result = run_session(repository, session, quiet=True)
    fixed = app_demo.found_and_fixed(repository, session)
    code = exit_code(result) or (ExitCode.finished if fixed else ExitCode.unfinished)
    facts = {"repository": str(repository.top), "found_and_fixed": fixed, "exit_code": code}
    print_document(session_document(result.view) | facts)
    return code


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
