"""archive, export, reopen, and the question at the end of a run."""

from pathlib import Path

import anyio
import click

from iterdev.app import archive as app_archive
from iterdev.core.errors import IterdevError, UserError
from iterdev.core.session import archive as session_archive
from iterdev.core.session.archive import ARCHIVE, EXPORT, GATE, KEEP, KEPT, RETRY, Action, choices
from iterdev.core.session.events import Gate
from iterdev.core.session.state import State
from iterdev.core.types import Phase, SessionId, Status
from iterdev.engine.repository import Repository
from iterdev.surfaces.cli.output import prompt


def archive(*, session: str) -> int:
    repository = Repository(Path.cwd())
    click.echo(standing(app_archive.archive(repository, repository.find(session))))
    return 0


def export(*, session: str, path: Path) -> int:
    repository = Repository(Path.cwd())
    click.echo(standing(app_archive.export(repository, repository.find(session), path.expanduser().resolve())))
    return 0


def reopen(*, session: str) -> int:
    repository = Repository(Path.cwd())
    click.echo(standing(app_archive.reopen(repository, repository.find(session))))
    return 0


def answer(repository: Repository, session: SessionId, choice: str) -> int:
    """The question of a finished session, answered from any shell."""
    offered = _choices(repository.state(session))
    commands = {EXPORT: f"iterdev export {session} PATH", RETRY: f"iterdev retry {session}"}
    if choice not in offered:
        raise UserError(f'"{choice}" is not an answer to "{GATE}"', hint=f"one of: {', '.join(offered)}")
    if choice in commands:
        raise UserError(f'"{choice}" is a command of its own', hint=commands[choice])
    click.echo(standing(_done(repository, session, choice)))
    return 0


def standing(state: State) -> str:
    """Where a session is after its completion, and how to get on with it."""
    session, counts = state.session.id, ", ".join(f"{state.count(s)} {s}" for s in Status if s.is_final)
    if state.phase is not Phase.archived:
        return f"{session} is kept active: {counts}\nGo on with: iterdev resume {session}"
    exported = f"\nExported to: {state.completion.exported}" if state.completion.exported else ""
    return f"{session} is archived: {counts}{exported}\nOpen it again with: iterdev reopen {session}"


def by_itself(repository: Repository, state: State) -> None:
    """What the configuration wants done without a question."""
    match repository.settings.session.completion_action:
        case Action.auto_archive if state.phase is not Phase.archived:
            _safely(repository, state.session.id, ARCHIVE)
        case Action.auto_keep if state.phase is Phase.completed:
            _safely(repository, state.session.id, KEEP)
        case _:
            pass


def asked(repository: Repository, state: State) -> bool:
    """Asks what is to become of a finished session, and does it; True if its failed tasks are to be tried again."""
    action = repository.settings.session.completion_action
    open_question = action is Action.interactive and state.phase is not Phase.archived and not state.policy.auto
    if not open_question or not prompt.can_ask() or state.why not in {"", KEPT}:
        return False
    gate = Gate(id=GATE, question="The pipeline is complete. What now?", choices=_choices(state))
    choice = anyio.run(prompt.ask, gate)
    if choice in {None, RETRY}:
        return choice == RETRY
    click.echo(standing(_safely(repository, state.session.id, str(choice))))
    return False


def _choices(state: State) -> tuple[str, ...]:
    return choices(failures=bool(state.count(Status.failed) or state.count(Status.skipped)))


def _safely(repository: Repository, session: SessionId, choice: str) -> State:
    """The finished work must not suffer from its completion: whatever goes wrong, the session is kept."""
    try:
        return _done(repository, session, choice)
    except (IterdevError, OSError) as error:
        click.echo(f"iterdev: {choice} failed: {error}", err=True)
        return app_archive.keep(repository, session)


def _done(repository: Repository, session: SessionId, choice: str) -> State:
    match choice:
        case session_archive.ARCHIVE:
            return app_archive.archive(repository, session)
        case session_archive.EXPORT:
            target = Path(click.prompt("Export to which folder?"))
            return app_archive.export(repository, session, target.expanduser().resolve())
        case _:
            return app_archive.keep(repository, session)
