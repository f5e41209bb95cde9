"""A repository that iterdev works on: its top, its settings, its journal, and the sessions in it.

Every command opens one. What only some of them need is imported where it is used: git, worktrees, session folders.
"""
# ruff: noqa: PLC0415 - see above

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from iterdev.core import ids, settings
from iterdev.core.errors import HostError, UserError
from iterdev.core.formatting import counted
from iterdev.core.session.events import Session
from iterdev.core.session.state import State
from iterdev.core.session.summary import SessionSummary
from iterdev.core.settings import Settings
from iterdev.core.types import Role, SessionId
from iterdev.host import checkout_top, clock, paths, session_lease, text_files
from iterdev.host.processes.identity import alive, identity
from iterdev.store.journal import NAME, Behind, Damaged, Journal
from iterdev.store.session_folder import find
from iterdev.store.session_log import SessionLog, create, read_state
from iterdev.teams.contract import Team
from iterdev.teams.table import TEAMS

if TYPE_CHECKING:
    from iterdev.host.secrets import Redactor
    from iterdev.host.workspaces.pool import Pool
    from iterdev.store.tracker_log import TrackerLog

STATE = ".workflow"
DAMAGED = ".damaged-"
BESIDE = ("-wal", "-shm")
"""Files that SQLite has beside the journal."""

TEXTS = frozenset(
    [
        *("text", "title", "description", "requirement", "goal", "question", "findings", "error", "summary"),
        *("reason", "why", "note", "notes", "output", "doubt", "acceptance_criteria", "problems"),
    ]
)
"""The fields of events that are text of people, agents or programs. The others refer to something, and have to stay."""

T = TypeVar("T")


class Repository:
    def __init__(
        self, folder: Path, teams: Mapping[str, Team] = TEAMS, *, now: Callable[[], float] = clock.now
    ) -> None:
        self.top = checkout_top.top_level(folder)
        self.teams, self._now = teams, now
        self.workers: tuple[Role, ...] = tuple(dict.fromkeys(role for team in teams.values() for role in team.workers))
        """The roles of all teams."""
        self.settings = read_settings(self.top, self.workers)
        self.stays_here = False
        """Attempts run on this machine, whatever the configuration says."""
        self._path = self.top / STATE / NAME
        self._journal: Journal | None = None
        self._folded: State | None = None
        """The state that was read last: a long journal is folded once, and after that only what is new in it."""

    @property
    def runs_here(self) -> bool:
        """Whether attempts run on this machine, and not on hosts."""
        return self.stays_here or self.settings.remote.engine is None

    @cached_property
    def redact(self) -> "Redactor":
        """Removes secrets; made when first needed, because git is asked for the addresses of its remotes."""
        from iterdev.host import known_secrets, secrets
        from iterdev.host.git import checkout

        files = known_secrets.env_files(self.top, self.settings.project.copy)
        return secrets.redactor(os.environ, files, known_secrets.of_settings(checkout.login_settings(self.top)))

    @property
    def journal(self) -> Journal:
        """Opened when first needed; a damaged one is renamed, and rebuilt from the session folders."""
        if self._journal is None:
            try:
                self._journal = self._opened()
            except Damaged:
                self._set_aside()
                self._journal = self._opened()
        return self._journal

    def _opened(self) -> Journal:
        journal = Journal(self._path, self.teams, lambda event: self.redact.struct(event, only=TEXTS))
        try:
            self._rebuild(journal, journal.sessions())
        except BaseException:
            journal.close()
            raise
        return journal

    @property
    def has_journal(self) -> bool:
        return self._path.exists() or bool(find.folders(self.top))

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

    def names_setting(self, table: str, key: str) -> bool:
        """Whether the configuration has the key, be it with the value that is the default."""
        found = _settings_document(self.top).get(table)
        return isinstance(found, dict) and key in found

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
        return SessionLog(self.journal, session, now=self._now, known=self.state(session))

    def tracker_log(self) -> "TrackerLog":
        """The issue tracker of this checkout; the one to use is that of the main worktree."""
        from iterdev.store.tracker_log import TrackerLog

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

    def workspaces(self, name: str, confine_git: Callable[[Path], None] | None = None) -> "Pool":
        """The worktrees of a session, or of something else by that name."""
        from iterdev.host.workspaces.pool import Pool

        return Pool(self.top, paths.workspaces_of(self.top) / name, paths.temps(), confine_git)

    def engine_alive(self, session: Session | SessionSummary) -> bool:
        """Whether an engine drives the session now: its process lives, and it holds the lease."""
        return self.engine_process(session) is not None

    def engine_process(self, session: Session | SessionSummary) -> int | None:
        """The process of the engine that drives the session now."""
        holder = self.journal.holder(session.id)
        held = holder is not None and session_lease.is_held(self.top / session.folder)
        return holder.pid if holder and held and alive(holder) else None

    def incomplete(self) -> list[SessionId]:
        """The sessions whose last engine ended before it had done everything, the newest last."""
        held = self._read(Journal.held) if self.has_journal else set()
        return [one.id for one in self.summaries() if one.id in held and not self.engine_alive(one)] if held else []

    @contextmanager
    def lease(self, log: SessionLog) -> Iterator[int]:
        """Keeps engines off the session while its newest state is used; the processes of a dead engine end first."""
        folder, session = self.folder(log.state), log.state.session
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            with session_lease.lease(
                folder, wait=lambda: not self.engine_alive(session), free=lambda: self._end_processes(session.id)
            ) as descriptor:
                self._end_processes(session.id)
                log.refresh()
                yield descriptor
        except session_lease.Held:
            raise self.still_running(log.session) from None

    def _end_processes(self, session: SessionId) -> None:
        """Ends what is left of an engine that has died; usually its supervisor has done that already."""
        holder, me = self.journal.holder(session), identity(os.getpid())
        if holder and me and holder.boot == me.boot and holder != me and not alive(holder):
            from iterdev.host.processes.trees import kill_left_by

            kill_left_by(holder)

    def still_running(self, session: SessionId) -> UserError:
        holder = self.journal.holder(session)
        lives = holder is not None and alive(holder)
        stop = f"stop it with `kill {holder.pid}`" if holder and lives else "wait until its processes have ended"
        return UserError(
            f'"{session}" is still running in process {holder.pid if holder else "unknown"}',
            hint=f"watch it with `iterdev follow {session}`, or {stop}",
        )

    def prepare(self) -> None:
        """Creates the folder for the state of iterdev, and excludes it from git."""
        from iterdev.host.git import checkout

        folder, hint = self.top / STATE, "make the repository writable, then try again"
        try:
            folder.mkdir(exist_ok=True, mode=0o700)
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

    def rebuild_journal(self) -> Path:
        """Renames the journal and makes a new one from the session folders; returns where the old one is."""
        if running := [folder for _, folder in find.folders(self.top) if session_lease.is_held(folder)]:
            raise UserError(f'"{running[0].name}" is running', hint="stop its process first")
        self.close()
        aside = self._set_aside()
        self.sessions()
        return aside

    def damaged_journals(self) -> list[Path]:
        """The journals that were renamed because they could not be read."""
        files = self._path.parent.glob(f"{NAME}{DAMAGED}*")
        return sorted(path for path in files if not path.name.endswith(BESIDE))

    def _set_aside(self) -> Path:
        path, stamp = self._path, ids.moment(clock.now()).replace(":", "")
        aside = path.with_name(f"{path.name}{DAMAGED}{stamp}")
        for suffix in ("", *BESIDE):
            file = path.with_name(path.name + suffix)
            if file.exists():
                file.rename(f"{aside}{suffix}")
        return aside

    def _rebuild(self, journal: Journal, known: Sequence[str]) -> None:
        """Sessions that have a folder but are not in the journal, because it was lost or could not be read."""
        missing = [(engine, folder) for engine, folder in find.folders(self.top) if folder.name not in known]
        if not missing:
            return
        from iterdev.host.git import refs
        from iterdev.store.session_folder import projector, rebuild

        for engine, folder in missing:
            base, branch = refs.head(self.top), refs.current_branch(self.top)
            digest = projector.table_digest(folder)
            try:
                created, events = rebuild.session_events(folder, engine, self.teams, base=base, branch=branch)
            except UserError:
                continue
            try:
                state = create(journal, events, at=created or clock.now())
            except Behind as behind:
                if folder.name in journal.sessions():
                    continue  # Another process has rebuilt it.
                raise Damaged(f'"{journal.path}" has entries of a session that it does not list') from behind
            # What was read just now is no edit; a later one is compared with it.
            journal.intend(state.session.id, find.TABLE, digest, seq=state.seq)
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
    document = _settings_document(top)
    known: tuple[str, ...] = ()
    if "agents" in document:
        # Adapters take a while to load, and no other table is checked against their names.
        from iterdev.agents.registry import KNOWN_AGENTS as known  # noqa: N811
    return settings.read(document, roles, known)


def _settings_document(top: Path) -> Mapping[str, object]:
    """What iterdev.toml says; empty if there is none."""
    path = top / settings.FILE
    try:
        text = text_files.read(path)
        from iterdev.host import toml_text

        document: Mapping[str, object] = toml_text.parse(text)
    except FileNotFoundError:
        return {}
    except ValueError as error:
        # Also a number of more digits than Python reads, and what is not UTF-8.
        raise UserError(f"{settings.FILE} is not valid TOML: {error}", hint=f"fix {settings.FILE}") from error
    except OSError as error:
        raise HostError(f'Cannot read "{path}": {error.strerror}', hint="check its permissions") from error
    return document
