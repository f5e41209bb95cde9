"""A repository that iterdev works on: its top, its settings, its journal, and the sessions in it."""

import os
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from iterdev.core import ids, settings
from iterdev.core.errors import HostError, UserError
from iterdev.core.formatting import counted
from iterdev.core.session.events import Session
from iterdev.core.session.state import State
from iterdev.core.session.summary import SessionSummary
from iterdev.core.settings import Settings
from iterdev.core.types import Role, SessionId
from iterdev.host import clock, paths, secrets, session_lease, text_files
from iterdev.host.git import checkout, command, refs
from iterdev.host.processes.identity import alive
from iterdev.host.workspaces.pool import Pool
from iterdev.store.journal import NAME, Damaged, Journal
from iterdev.store.session_folder import projector, rebuild
from iterdev.store.session_log import SessionLog, create, read_state
from iterdev.store.tracker_log import TrackerLog
from iterdev.teams.contract import Team
from iterdev.teams.table import TEAMS

STATE = ".workflow"

T = TypeVar("T")


class Repository:
    def __init__(self, folder: Path, teams: Mapping[str, Team] = TEAMS) -> None:
        command.check_version(command.version())
        self.top = checkout.top_level(folder)
        self.teams = teams
        self.workers: tuple[Role, ...] = tuple(dict.fromkeys(role for team in teams.values() for role in team.workers))
        """The roles of all teams."""
        self.settings = read_settings(self.top, self.workers)
        self.redact = secrets.redactor(os.environ, [self.top / ".env", self.top / ".env.local"])
        self._path = self.top / STATE / NAME
        self._journal: Journal | None = None
        self._folded: State | None = None
        """The state that was read last: a long journal is folded once, and after that only what is new in it."""

    @property
    def journal(self) -> Journal:
        """Opened when first needed; a damaged one is renamed, and rebuilt from the session folders."""
        if self._journal is None:
            try:
                self._journal = Journal(self._path, self.teams)
                known = self._journal.sessions()
            except Damaged:
                self._set_aside()
                self._journal, known = Journal(self._path, self.teams), []
            self._rebuild(self._journal, known)
        return self._journal

    @property
    def has_journal(self) -> bool:
        return self._path.exists() or bool(rebuild.folders(self.top))

    def close(self) -> None:
        self._folded = None
        if self._journal:
            self._journal.close()
            self._journal = None

    def sessions(self) -> list[SessionId]:
        return self._read(Journal.sessions) if self.has_journal else []

    def state(self, session: SessionId) -> State:
        # A journal that turns out to be damaged is closed, and with it goes what was folded.
        self._folded = self._read(lambda journal: read_state(journal, session, self._folded))
        return self._folded

    @property
    def default_team(self) -> Team:
        """The team of a new session: the first of the table."""
        return next(iter(self.teams.values()))

    def team(self, state: State) -> Team:
        return self.teams[state.session.team]

    def summaries(self) -> list[SessionSummary]:
        """Every session in a few fields, the newest last."""
        return self._read(Journal.summaries) if self.has_journal else []

    def log(self, session: SessionId) -> SessionLog:
        return SessionLog(self.journal, session, now=clock.now, known=self.state(session))

    def tracker_log(self) -> TrackerLog:
        """The issue tracker of this checkout; the one to use is that of the main worktree."""
        return self._read(lambda journal: TrackerLog(journal, now=clock.now))

    def find(self, name: str) -> SessionId:
        """The session of that name, or the only one whose name begins with it, or else contains it."""
        sessions = self.sessions()
        if name in sessions:
            return SessionId(name)
        begin = [session for session in sessions if session.startswith(name)]
        close = begin or [session for session in sessions if name in session]
        if len(close) == 1:
            return close[0]
        raise UserError(
            f'There is no session "{name}"' if not close else f'"{name}" fits {counted(len(close), "session")}',
            hint=f"one of: {', '.join(close or sessions)}" if sessions else 'iterdev run "Add a greeting"',
        )

    def last_active(self) -> SessionId:
        """The session in which something happened last."""
        if not self.has_journal or not (sessions := self._read(Journal.by_activity)):
            raise UserError(f'There is no session in "{self.top}" yet', hint='iterdev run "Add a greeting"')
        return sessions[-1]

    def last_finished(self) -> SessionId:
        """The session in which something happened last, of those whose work is done; if there is none, of all."""
        finished = {summary.id for summary in self.summaries() if summary.outcome}
        active = self._read(Journal.by_activity) if finished else []
        return next((session for session in reversed(active) if session in finished), None) or self.last_active()

    def unfinished(self) -> list[SessionId]:
        return [summary.id for summary in self.summaries() if not summary.is_over]

    def folder(self, state: State) -> Path:
        return self.top / state.session.folder

    def workspaces(self, name: str) -> Pool:
        """The worktrees of a session, or of something else by that name."""
        return Pool(self.top, paths.workspaces_of(self.top) / name, paths.temps())

    def engine_alive(self, session: Session | SessionSummary) -> bool:
        """Whether an engine drives the session now: its process lives, and it holds the lease."""
        holder = self.journal.holder(session.id)
        return holder is not None and session_lease.is_held(self.top / session.folder) and alive(holder)

    def incomplete(self) -> list[SessionId]:
        """The sessions whose last engine ended before it had done everything, the newest last."""
        held = self._read(Journal.held) if self.has_journal else set()
        return [one.id for one in self.summaries() if one.id in held and not self.engine_alive(one)] if held else []

    @contextmanager
    def lease(self, log: SessionLog) -> Iterator[int]:
        """Keeps engines off the session while its newest state is used; waits for processes of a dead engine to end."""
        folder = self.folder(log.state)
        folder.mkdir(parents=True, exist_ok=True)
        try:
            with session_lease.lease(folder, wait=lambda: not self.engine_alive(log.state.session)) as descriptor:
                log.refresh()
                yield descriptor
        except session_lease.Held:
            raise self.still_running(log.session) from None

    def still_running(self, session: SessionId) -> UserError:
        holder = self.journal.holder(session)
        return UserError(
            f'"{session}" is still running in process {holder.pid if holder else "unknown"}',
            hint=f"watch it with `iterdev status {session}`, or stop that process first",
        )

    def prepare(self) -> None:
        """Creates the folder for the state of iterdev, and excludes it from git."""
        folder, hint = self.top / STATE, "make the repository writable, then try again"
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise HostError(f'Cannot create "{folder}": {error.strerror}', hint=hint) from error
        if not os.access(folder, os.W_OK):
            raise HostError(f'"{folder}" is read-only', hint=hint)
        checkout.exclude(self.top, f"/{STATE}/")

    def instructions(self) -> dict[Role, str]:
        """What the user wrote for each role."""
        files = {role: self.top / table.file for role, table in self.settings.roles.items() if table.file}
        return {role: _instructions(role, path) for role, path in files.items()}

    def _read(self, question: Callable[[Journal], T]) -> T:
        """Reads from the journal; damage that is found only now is repaired in the same way."""
        try:
            return question(self.journal)
        except Damaged:
            self.close()
            self._set_aside()
            return question(self.journal)

    def _set_aside(self) -> None:
        path, stamp = self._path, ids.moment(clock.now()).replace(":", "")
        for suffix in ("", "-wal", "-shm"):
            file = path.with_name(path.name + suffix)
            if file.exists():
                file.rename(path.with_name(f"{path.name}.damaged-{stamp}{suffix}"))

    def _rebuild(self, journal: Journal, known: Sequence[str]) -> None:
        """Sessions that have a folder but are not in the journal, because it was lost or could not be read."""
        for engine, folder in rebuild.folders(self.top):
            if folder.name in known:
                continue
            base, branch = refs.head(self.top), refs.current_branch(self.top)
            digest = projector.table_digest(folder)
            try:
                created, events = rebuild.session_events(folder, engine, self.teams, base=base, branch=branch)
            except UserError:
                continue
            state = create(journal, events, at=created or clock.now())
            # What was read just now is no edit; a later one is compared with it.
            journal.intend(state.session.id, projector.TABLE, digest, seq=state.seq)
            # What happened before is in the files of the tracker.
            journal.mark_followed(state.session.id, state.seq)


def _instructions(role: Role, path: Path) -> str:
    try:
        return text_files.read(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UserError(
            f'The file of the role "{role}" is expected at "{path}", and cannot be read: {reason}',
            hint=f"write it, or fix `file` under [roles.{role}] in iterdev.toml",
        ) from error


def read_settings(top: Path, roles: tuple[Role, ...]) -> Settings:
    path = top / settings.FILE
    try:
        document: Mapping[str, object] = tomllib.loads(text_files.read(path))
    except FileNotFoundError:
        return Settings()
    except RecursionError as error:
        raise UserError(f"{settings.FILE} is nested too deeply", hint=f"fix {settings.FILE}") from error
    except ValueError as error:
        # Also a number of more digits than Python reads, and what is not UTF-8.
        raise UserError(f"{settings.FILE} is not valid TOML: {error}", hint=f"fix {settings.FILE}") from error
    except OSError as error:
        raise HostError(f'Cannot read "{path}": {error.strerror}', hint="check its permissions") from error
    known: tuple[str, ...] = ()
    if "agents" in document:
        # Adapters take a while to load, and no other table is checked against their names.
        from iterdev.agents.registry import KNOWN_AGENTS as known  # noqa: N811, PLC0415
    try:
        return settings.read(document, roles, known)
    except RecursionError as error:
        raise UserError(f"{settings.FILE} is nested too deeply", hint=f"fix {settings.FILE}") from error
