"""Opens a repository, and finds a session by its name or as the one that was last active.

What most commands do not need is imported where it is used.
"""
# ruff: noqa: PLC0415 - see above

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from iterdev.app.edits import table_edited
from iterdev.core.errors import IterdevError, UserError
from iterdev.core.processes import ProcessIdentity
from iterdev.core.types import Phase, Role, SessionId
from iterdev.engine.repository import STATE, Repository
from iterdev.host.processes.ancestry import nearest_monitor
from iterdev.store.journal import NAME

SESSION_DIR = "ITERDEV_SESSION_DIR"
ATTEMPT = ("ITERDEV_TASK", "ITERDEV_SESSION", "ITERDEV_RESULT")
"""Variables that together are set only inside of an attempt."""


class SessionChoice(Struct, frozen=True):
    sessions: tuple[SessionId, ...]
    otherwise: SessionId | UserError
    """The session to take where no user can be asked, or the error."""

    def unasked(self) -> SessionId:
        if isinstance(self.otherwise, UserError):
            raise self.otherwise
        return self.otherwise


def repository_of_attempt(environment: Mapping[str, str]) -> Repository | None:
    """The repository of the session that an attempt belongs to; the attempt itself is in a worktree."""
    folder = Path(environment.get(SESSION_DIR, ""))
    return Repository(folder) if folder.is_absolute() and folder.is_dir() else None


def refuse_inside_attempt(
    command: str,
    environment: Mapping[str, str],
    folder: Path,
    hint: str = "do the task itself; `iterdev team` has the tools",
) -> None:
    """Raises if the command is called by an agent, which may neither start a team nor decide about a session."""
    from iterdev.host.workspaces.pool import workspace_around

    if all(environment.get(name) for name in ATTEMPT):
        task, session = environment["ITERDEV_TASK"], environment["ITERDEV_SESSION"]
        where = f'the attempt at "{task}" of the session "{session}"'
    elif workspace := workspace_around(folder):
        where = f'the workspace "{workspace}" of a session'
    elif monitor := _monitor_of_other_session(Path(environment.get(SESSION_DIR) or folder), folder):
        where = f"an attempt, which process {monitor.pid} monitors"
    else:
        return
    raise UserError(f"`iterdev {command}` cannot be used inside of {where}", hint=hint)


def _monitor_of_other_session(*folders: Path) -> ProcessIdentity | None:
    """The monitor of this process, if it is in an attempt and a repository of the folders has sessions of others.

    Tests may start sessions of their own, in a repository of their own, and decide about them.
    """
    monitor = nearest_monitor(os.getpid())
    return monitor if monitor and any(_has_other_session(folder, monitor) for folder in folders) else None


def _has_other_session(folder: Path, monitor: ProcessIdentity) -> bool:
    """Whether a session of the repository was not started under the monitor."""
    try:
        repository = Repository(folder)
    except IterdevError:
        return False
    return any(repository.state(name).session.monitor != monitor for name in repository.sessions())


def without_secrets(text: str, folder: Path) -> str:
    """An error without the secrets of the repository that the folder is in: git may quote any file."""
    try:
        return Repository(folder).redact(text)
    except (IterdevError, OSError):
        from iterdev.host import known_secrets, secrets

        return secrets.redactor(os.environ, known_secrets.env_files(folder))(text)


def session_ids(folder: Path) -> list[SessionId]:
    """Every session of the repository that the folder is in; outside of a repository there are none."""
    try:
        return Repository(folder).sessions()
    except IterdevError:
        return []


def main_worktree(repository: Repository) -> Path | None:
    """The main worktree, if this is a linked one, whose sessions `git worktree remove` deletes with it."""
    from iterdev.host.git.checkout import main_checkout

    main = main_checkout(repository.top)
    return None if main.resolve() == repository.top.resolve() else main


def elsewhere(repository: Repository) -> list[Path]:
    """Other worktrees of the repository that have sessions: each worktree has its own."""
    from iterdev.host.git.checkout import checkouts

    own = repository.top.resolve()
    return [top for top in checkouts(repository.top) if top.resolve() != own and (top / STATE / NAME).exists()]


def named_or_last_active(repository: Repository, name: str | None) -> SessionId:
    return repository.find(name) if name else repository.last_active()


def named_or_last_finished(repository: Repository, name: str | None) -> SessionId:
    return repository.find(name) if name else repository.last_finished()


def before_task(repository: Repository, words: Sequence[str]) -> tuple[SessionId, str]:
    """The session and the task that at most two words name, each of which may be left out.

    A single word is a task of the session that was last active, or else a session.
    """
    match words:
        case []:
            return repository.last_active(), ""
        case [word]:
            last = repository.last_active()
            return (last, word) if word in repository.state(last).tasks.plan else (repository.find(word), "")
        case [name, task]:
            return repository.find(name), task
        case _:
            raise UserError(f'"{words[2]}" is one word too many', hint="name a session and a task")


def before_text(repository: Repository, words: Sequence[str]) -> tuple[SessionId, str]:
    """The session named before a text, or the one that was last active, and the text.

    A word is taken for a session only if it begins an id at least up to its first dash.
    """
    if len(words) > 1 and "-" in words[0] and any(one.startswith(words[0]) for one in repository.sessions()):
        return repository.find(words[0]), " ".join(words[1:])
    return repository.last_active(), " ".join(words)


def newest_of_team(repository: Repository, team: str) -> SessionId:
    """The newest session of the team of that name; an unfinished one before those that are over."""
    unfinished = set(repository.unfinished())
    teams = {session: repository.state(session).session.team_name for session in repository.sessions()}
    of_team = sorted((one for one in teams if teams[one] == team), key=unfinished.__contains__)
    if not of_team:
        known = ", ".join(sorted(set(teams.values())))
        raise UserError(f'No session has the team "{team}"', hint=f"teams: {known}" if known else "iterdev sessions")
    return of_team[-1]


def to_continue(repository: Repository, name: str = "") -> SessionId | SessionChoice:
    """The session of that name, or the newest that is not finished, or whose last run was cut off at its end."""
    sessions = repository.sessions()
    if name in sessions:
        return SessionId(name)
    if name:
        try:
            return SessionChoice(tuple(sessions), repository.find(name))
        except UserError as error:
            if not sessions:
                raise
            return SessionChoice(tuple(sessions), error)
    if unfinished := repository.unfinished():
        return unfinished[-1]
    if incomplete := repository.incomplete():
        return incomplete[-1]
    if edited := _newest_edited(repository):
        return edited
    hint = f"iterdev status {repository.last_active()}; all sessions: {', '.join(sessions)}"
    return SessionChoice(tuple(sessions), UserError("No session is unfinished", hint=hint))


def _newest_edited(repository: Repository) -> SessionId | None:
    """The newest finished session whose table a person has edited since."""
    finished = (one.id for one in reversed(repository.summaries()) if one.phase is Phase.completed)
    return next((one for one in finished if table_edited(repository, repository.state(one))), None)


def to_resume(repository: Repository, name: str = "") -> SessionId | SessionChoice:
    """The session of that name, or the only one that is not finished; of several, the user chooses one."""
    if name:
        return repository.find(name)
    unfinished = repository.unfinished()
    if len(unfinished) <= 1:
        return to_continue(repository)
    return one_of(unfinished, hint=f"name one: iterdev resume {unfinished[-1]}")


def to_work_in(repository: Repository, role: Role, name: str = "") -> SessionId | SessionChoice:
    """The session of that name, or the only unfinished one whose team has the role; of several, the user chooses."""
    if name:
        session = repository.find(name)
        workers = repository.team(repository.state(session)).workers
        if role not in workers:
            raise UserError(f'"{session}" has no {role}', hint=f"its roles: {', '.join(workers)}")
        return session
    unfinished = repository.unfinished()
    fitting = [one for one in unfinished if role in repository.team(repository.state(one)).workers]
    if len(fitting) > 1:
        return one_of(fitting, hint=f"name one: iterdev run --role {role} {fitting[-1]}")
    if unfinished and not fitting:
        raise UserError(f'No unfinished session has a "{role}"', hint="iterdev sessions")
    return fitting[0] if fitting else to_continue(repository)


def one_of(sessions: Sequence[SessionId], *, hint: str) -> SessionChoice:
    """A choice that nobody but the user can make."""
    listed = ", ".join(sessions)
    return SessionChoice(tuple(sessions), UserError(f"Several sessions are unfinished: {listed}", hint=hint))
