"""The demo: a whole sprint on a bundled sample, with a scripted team and a planted defect, in a scratch repository."""

import shlex
import shutil
import sys
import tempfile
from importlib import resources
from itertools import count
from pathlib import Path

import click

from iterdev.app import start
from iterdev.core import ids
from iterdev.core.request import Request
from iterdev.core.session.state import State
from iterdev.core.types import Pipeline, Signal
from iterdev.core.views import report
from iterdev.engine.repository import Repository
from iterdev.host.git import checkout, commits, refs, worktrees
from iterdev.host.git.command import Identity
from iterdev.surfaces.cli.commands import run
from iterdev.teams.development import critic

REQUIREMENT = "Add percentage discounts to the till"
AUTHOR = Identity("iterdev demo", "demo@iterdev.invalid")


def demo() -> int:
    """0 only if the planted defect was found and mended, and the mended work landed."""
    top = scratch()
    click.echo(_opening(top))
    repository = Repository(top)
    session = start.begin(repository, Request(requirement=REQUIREMENT, auto=True, pipeline=Pipeline.sprint))
    code = run.go_on(repository, session)
    state = repository.state(session)
    if code:
        click.echo(f"The scratch repository is kept: cd {shlex.quote(str(top))}")
        return code
    click.echo(_closing(state, top))
    if converged(state):
        return 0
    click.echo("The demo did not go as it should: the planted defect was not both found and mended.", err=True)
    return 1


def scratch() -> Path:
    """A new repository in the folder for temporary files, with the sample as its first commit."""
    top = _new_folder()
    with resources.as_file(resources.files("iterdev") / "sample") as sample:
        shutil.copytree(sample, top, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    checkout.init(top, "main")
    commit = commits.commit_tree(top, worktrees.write_tree(top), (), "Start with a till\n", AUTHOR)
    refs.move_ref(top, "refs/heads/main", commit)
    return top


def _new_folder() -> Path:
    """A number is easier to read and to type than the letters of mkdtemp; mkdir is as safe against a rival."""
    for number in count(1):
        folder = Path(tempfile.gettempdir()) / f"iterdev-demo-{number}"
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise AssertionError("numbers do not end")


def converged(state: State) -> bool:
    """The first verdicts found the defect, the last ones found nothing, and nothing was forced."""
    reviews = [critic.signal(review) for review in state.reviews.values()]
    tests = [verification.passed for verification in state.verifications.values()]
    found = Signal.revision_needed in reviews[:1] and False in tests[:1]
    return found and reviews[-1] is Signal.converged and tests[-1] and not state.forced


def _opening(top: Path) -> str:
    return (
        f'A scripted team gets a small project in {top} and the request "{REQUIREMENT}".\n'
        "No model is asked and no key is needed; git, the worktrees, the test runs and the landing are real.\n"
        "The developer's first try has a planted defect.\n"
    )


def _closing(state: State, top: Path) -> str:
    branch = ids.branch(state.session.id)
    shortened, _, _ = report.report(state).partition("\n---\n\n## Pipeline Execution")
    log = checkout.short_log(top, branch)
    return (
        f"\n{shortened}\n"
        f"$ git log --oneline {branch}\n{log}\n"
        "Your turn; main is as it was until you accept:\n"
        f"{_next_commands(top)}"
    )


def _next_commands(top: Path) -> str:
    """Lines that can be pasted, also when iterdev was started by its path."""
    commands = [f"cd {shlex.quote(str(top))}", "iterdev status", "iterdev report", "iterdev accept", "git log --stat"]
    if shutil.which("iterdev") is None:
        commands.insert(0, f'export PATH={shlex.quote(str(Path(sys.executable).parent))}:"$PATH"')
    return "\n".join(f"  {command}" for command in commands)
