"""iterdev demo: a whole session on a bundled sample, with a scripted team and planted defects."""

import shlex
import shutil
import sys
from collections.abc import Sequence
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


@click.command(help="Run a whole session on a bundled sample, with no model and no key")
@click.option(
    "--team",
    type=click.Choice(list(app_demo.DEMOS)),
    default=next(iter(app_demo.DEMOS)),
    help="A sprint of the development team (iterdev), or five issues (issue)  [default: iterdev]",
)
@arguments.as_json
def demo(*, team: str, as_json: bool) -> ExitCode:
    """0 only if the planted defects were found, and what is good landed."""
    repository, shown = app_demo.create_repository(), app_demo.DEMOS[team]
    if as_json:
        return _document(shown, repository)
    print_text(
        f"A scripted team gets a small project in {repository.top} and {shown.asked}.\n"
        "No model is asked and no key is needed; git, the worktrees, the test runs and the landing are real.\n"
        f"{shown.defect}\n"
    )
    session = shown.start(repository)
    code = show_run(repository, session)
    if code not in _expected(shown):
        print_text(f"The scratch repository is kept: cd {shlex.quote(str(repository.top))}")
        return code
    print_text(_closing(shown, repository, session))
    if app_demo.found_and_fixed(shown, repository, session):
        return ExitCode.finished
    print_warning("The demo failed: the planted defect was not both found and fixed.")
    return ExitCode.unfinished


def _expected(shown: app_demo.Demo) -> set[ExitCode]:
    return {ExitCode.finished} if shown.lands_all else {ExitCode.unfinished}


def _document(shown: app_demo.Demo, repository: Repository) -> ExitCode:
    session = shown.start(repository)
    result = run_session(repository, session, quiet=True)
    fixed = app_demo.found_and_fixed(shown, repository, session)
    code = exit_code(result)
    if code in _expected(shown):
        code = ExitCode.finished if fixed else ExitCode.unfinished
    facts = {"repository": str(repository.top), "found_and_fixed": fixed, "exit_code": code}
    print_document(session_document(result.view) | facts)
    return code


def _closing(shown: app_demo.Demo, repository: Repository, session: SessionId) -> str:
    branch, log = app_demo.branch_log(repository, session)
    return (
        f"\n{app_demo.short_report(repository, session)}\n"
        f"$ git log --oneline {branch}\n{log}\n"
        "Your turn; main is unchanged until you accept:\n"
        f"{_next_commands(repository.top, shown.next_commands)}"
    )


def _next_commands(top: Path, after: Sequence[str]) -> str:
    """Lines that can be pasted, even if iterdev was started by its path."""
    commands = [f"cd {shlex.quote(str(top))}", "iterdev status", *after, "git log --stat"]
    if shutil.which("iterdev") is None:
        commands.insert(0, f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"')
    return "\n".join(f"  {command}" for command in commands)
