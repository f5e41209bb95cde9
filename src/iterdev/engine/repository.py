"""A repository that iterdev works on: its top, its settings, its journal, and the sessions in it."""

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from iterdev.core import ids, settings
from iterdev.core.errors import HostError, UserError
from iterdev.core.session.events import Session
from iterdev.core.session.state import State
from iterdev.core.session.summary import SessionSummary
from iterdev.core.settings import Settings
from iterdev.core.types import Role, SessionId
from iterdev.host import clock, secrets, session_lease
from iterdev.host.git import checkout, command, refs
from iterdev.host.processes.identity import alive
from iterdev.store.journal import NAME, Damaged, Journal
from iterdev.store.session_folder import rebuild
from iterdev.store.session_log import SessionLog, create, read_state
from iterdev.teams.contract import Team
from iterdev.teams.table import TEAMS

STATE = ".workflow"

T = TypeVar("T")


class Repository:
    def __init__(self, folder: Path, teams: Mapping[str, Team] = TEAMS) -> None:
        command.check_version(command.version())
        self.top = checkout.top_level(folder)
        self.teams = teams
        self.settings = read_settings(self.top, teams)
        self.redact = secrets.redactor(os.environ, [self.top / ".env", self.top / ".env.local"])
        self._journal: Journal | None = None

    @property
    def journal(self) -> Journal:
        """Opened when first needed; a damaged one is set aside and made again from the session folders."""
        if self._journal is None:
            self._journal = self._open_journal()
        return self._journal

    @property
    def has_journal(self) -> bool:
        return (self.top / STATE / NAME).exists() or bool(rebuild.folders(self.top))

    def close(self) -> None:
        if self._journal:
            self._journal.close()
            self._journal = None

    def sessions(self) -> list[SessionId]:
        return self._read(Journal.sessions) if self.has_journal else []

    def state(self, session: SessionId) -> State:
        return self._read(lambda journal: read_state(journal, session))

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
        """What writes to a session."""
        return SessionLog(self.journal, session, now=clock.now)

    def find(self, name: str) -> SessionId:
        """The session of that name, or the only one whose name contains it."""
        sessions = self.sessions()
        if name in sessions:
            return SessionId(name)
        close = [session for session in sessions if name in session]
        if len(close) == 1:
            return close[0]
        raise UserError(
            f'There is no session "{name}"' if not close else f'"{name}" fits {len(close)} sessions',
            hint=f"one of: {', '.join(close or sessions)}" if sessions else 'iterdev run "Add a greeting"',
        )

    def newest(self) -> SessionId:
        sessions = self.sessions()
        if not sessions:
            raise UserError(f'There is no session in "{self.top}" yet', hint='iterdev run "Add a greeting"')
        return sessions[-1]

    def unfinished(self) -> list[SessionId]:
        return [summary.id for summary in self.summaries() if not summary.is_over]

    def folder(self, state: State) -> Path:
        return self.top / state.session.folder

    def engine_alive(self, session: Session | SessionSummary) -> bool:
        """Whether an engine drives the session now: its process lives, and it holds the lease."""
        holder = self.journal.holder(session.id)
        return holder is not None and session_lease.is_held(self.top / session.folder) and alive(holder)

    def prepare(self) -> None:
        """Makes the place for our files, out of git's sight."""
        try:
            (self.top / STATE).mkdir(exist_ok=True)
        except OSError as error:
            raise HostError(
                f'Cannot create "{self.top / STATE}": {error.strerror}',
                hint="make the repository writable, then try again",
            ) from error
        if not os.access(self.top / STATE, os.W_OK):
            raise HostError(f'"{self.top / STATE}" is read-only', hint="make the repository writable, then try again")
        checkout.exclude(self.top, f"/{STATE}/")

    def instructions(self) -> dict[Role, str]:
        """What the user wrote for each role."""
        return {role: self._read_file(role, table.file) for role, table in self.settings.roles.items() if table.file}

    def _read_file(self, role: str, name: str) -> str:
        try:
            return (self.top / name).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f'The file of the role "{role}" is expected at "{self.top / name}", and cannot be read: {error}',
                hint=f"write it, or fix `file` under [roles.{role}] in iterdev.toml",
            ) from error

    def _open_journal(self) -> Journal:
        path = self.top / STATE / NAME
        try:
            journal = Journal(path, self.teams)
            known = journal.sessions()
        except Damaged:
            self._set_aside(path)
            journal, known = Journal(path, self.teams), []
        self._rebuild(journal, known)
        return journal

    def _read(self, question: Callable[[Journal], T]) -> T:
        """Asks the journal; damage that shows only now is repaired in the same way."""
        try:
            return question(self.journal)
        except Damaged:
            self.close()
            self._set_aside(self.top / STATE / NAME)
            return question(self.journal)

    def _set_aside(self, path: Path) -> None:
        stamp = ids.moment(clock.now()).replace(":", "")
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
            try:
                team = self.teams.get(rebuild.team_name(folder)) or self.default_team
                _, created, events = rebuild.session_events(folder, engine, team, base=base, branch=branch)
            except UserError:
                continue
            create(journal, events, at=created or clock.now())


def read_settings(top: Path, teams: Mapping[str, Team]) -> Settings:
    path = top / settings.FILE
    try:
        document: Mapping[str, object] = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return Settings()
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"{settings.FILE} is not valid TOML: {error}", hint=f"fix {settings.FILE}") from error
    except OSError as error:
        raise HostError(f'Cannot read "{path}": {error.strerror}', hint="check its permissions") from error
    known: tuple[str, ...] = ()
    if "agents" in document:
        # Adapters take a while to load, and no other table is checked against their names.
        from iterdev.agents.registry import KNOWN_AGENTS as known  # noqa: N811, PLC0415
    return settings.read(
        document, tuple(dict.fromkeys(role for team in teams.values() for role in team.workers)), known
    )
