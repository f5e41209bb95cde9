"""The journal: one SQLite file per repository, one row per event; events are never changed.

Several processes may write. Each entry has its number within the session, so that a writer that decided on an old
state gets `Behind`. The journal also has a summary of each session.
"""

import os
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args

import msgspec
from msgspec.structs import replace

from iterdev.core.encodable import encodable_document
from iterdev.core.errors import HostError
from iterdev.core.processes import ProcessIdentity
from iterdev.core.session import events
from iterdev.core.session.events import Entry, Event, KernelEvent
from iterdev.core.session.summary import SessionSummary
from iterdev.core.types import SessionId, TaskFields, TaskId
from iterdev.teams.contract import Team
from iterdev.teams.table import TEAMS
from iterdev.tracker.events import TrackerEntry, TrackerEvent

NAME = "iterdev.db"
BUSY_SECONDS = 30
PAUSE = 0.01
MOST = 2**63 - 1
"""The greatest number that an entry can have."""
TAG = b'{"type":"'
"""An event begins with the name of its kind."""

MIGRATIONS = (
    """
    CREATE TABLE sessions (id TEXT PRIMARY KEY, created REAL NOT NULL, summary BLOB NOT NULL) STRICT;
    CREATE TABLE events (
        session TEXT NOT NULL, seq INTEGER NOT NULL, at REAL NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (session, seq)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE open_attempts (session TEXT NOT NULL, task TEXT NOT NULL, PRIMARY KEY (session, task)) STRICT;
    CREATE TABLE engines (
        session TEXT PRIMARY KEY, pid INTEGER NOT NULL, started TEXT NOT NULL, boot TEXT NOT NULL
    ) STRICT;
    CREATE TABLE projections (session TEXT NOT NULL, name TEXT NOT NULL, digest TEXT NOT NULL, seq INTEGER NOT NULL,
        PRIMARY KEY (session, name, digest)) STRICT;
    """,
    """
    CREATE TABLE tracker (seq INTEGER PRIMARY KEY, at REAL NOT NULL, body BLOB NOT NULL) STRICT;
    CREATE TABLE followed (session TEXT PRIMARY KEY, seq INTEGER NOT NULL) STRICT;
    """,
    """
    CREATE TABLE snapshots (session TEXT PRIMARY KEY, seq INTEGER NOT NULL, mark BLOB NOT NULL, body BLOB NOT NULL)
        STRICT;
    """,
)


class Followed(NamedTuple):
    """A session whose entries after `before`, up to `seq`, the tracker has processed."""

    session: SessionId
    before: int
    seq: int


class Snapshot(NamedTuple):
    """The state of a session after the entry `seq`, encoded; `snapshots.py` knows how, and when it may be used."""

    seq: int
    mark: bytes
    body: bytes


class Behind(Exception):
    """Another process wrote first; read on and decide again."""


class Damaged(HostError):
    """The file exists, but cannot be read as a journal."""


class Journal:
    def __init__(
        self, path: Path, teams: Mapping[str, Team] = TEAMS, clean: Callable[[Event], Event] = lambda event: event
    ) -> None:
        """`clean` removes what must not be written down from the texts of an event, before it is recorded."""
        self.path, self.teams, self.clean = path, teams, clean
        self.codec = EventCodec(teams)
        self._lock = threading.RLock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _make_private(path)
            self._db = _connect(path)
        except (OSError, sqlite3.DatabaseError) as error:
            raise _explained(error, path) from error
        try:
            with self._using() as db:
                if not _is_read_only(path):
                    _write_ahead(db)
                    db.execute("PRAGMA synchronous = FULL")
                self._migrate()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        self._db.close()

    def sessions(self) -> list[SessionId]:
        """Every session, the newest last."""
        with self._using() as db:
            rows = db.execute("SELECT id FROM sessions ORDER BY created, rowid").fetchall()
        return [SessionId(row[0]) for row in rows]

    def by_activity(self) -> list[SessionId]:
        """Every session, the one with the newest entry last."""
        newest = "(SELECT at FROM events WHERE session = id ORDER BY seq DESC LIMIT 1)"
        with self._using() as db:
            rows = db.execute(f"SELECT id FROM sessions ORDER BY {newest}, created, rowid").fetchall()  # noqa: S608 - constant
        return [SessionId(row[0]) for row in rows]

    def summaries(self) -> list[SessionSummary]:
        """Every session in a few fields, the newest last; no event is read."""
        with self._using() as db:
            counted = "summary, (SELECT count(*) FROM open_attempts WHERE session = id)"
            rows = db.execute(f"SELECT {counted} FROM sessions ORDER BY created, rowid").fetchall()  # noqa: S608 - constant
            with self._decoding():
                return [replace(msgspec.json.decode(text, type=SessionSummary), attempts=open_) for text, open_ in rows]

    def read(
        self, session: SessionId, after: int = 0, *, since: float = float("-inf"), until: int = MOST
    ) -> list[Entry]:
        """The entries after number `after`, up to number `until`, and not older than `since`."""
        with self._using() as db:
            rows = db.execute(
                "SELECT seq, at, body FROM events WHERE session = ? AND seq > ? AND seq <= ? AND at >= ? ORDER BY seq",
                (session, after, until, since),
            )
            with self._decoding():
                return [Entry(seq, float(at), self.codec.decode(body)) for seq, at, body in rows]

    def append(
        self, session: SessionId, entries: Sequence[Entry], *, after: int, summary: SessionSummary | None = None
    ) -> None:
        """Writes the entries after entry number `after`; all of them or none. A summary is needed where it changed."""
        with self._transaction() as db:
            if self.newest(session) != after:
                raise Behind
            for entry in entries:
                self._update_side_tables(session, entry)
            rows = [(session, entry.seq, entry.at, self.codec.encode(entry.event)) for entry in entries]
            try:
                db.executemany("INSERT INTO events VALUES (?, ?, ?, ?)", rows)
            except sqlite3.IntegrityError as error:
                # There is an entry of this number, and the index said that there is none.
                raise _damage(error, self.path) from error
            if summary:
                db.execute("UPDATE sessions SET summary = ? WHERE id = ?", (msgspec.json.encode(summary), session))

    def version(self) -> tuple[int, int]:
        """Numbers that differ from the last ones if anything was written since; asking takes microseconds."""
        with self._using() as db:
            # The first one counts what other connections wrote, the second one what this one did.
            return db.execute("PRAGMA data_version").fetchone()[0], db.total_changes

    def newest(self, session: SessionId) -> int:
        """The number of the last entry."""
        with self._using() as db:
            row = db.execute("SELECT max(seq) FROM events WHERE session = ?", (session,)).fetchone()
        return row[0] or 0

    def snapshot(self, session: SessionId) -> Snapshot | None:
        with self._using() as db, self._decoding():
            row = db.execute("SELECT seq, mark, body FROM snapshots WHERE session = ?", (session,)).fetchone()
            return Snapshot(*row) if row else None

    def save_snapshot(self, session: SessionId, snapshot: Snapshot) -> None:
        """Replaces the last one."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", (session, *snapshot))

    def encoded(self, session: SessionId, seq: int) -> bytes:
        """The time and the text of an entry as they are stored; empty if there is none of that number."""
        with self._using() as db, self._decoding():
            row = db.execute("SELECT at, body FROM events WHERE session = ? AND seq = ?", (session, seq)).fetchone()
            return b"%s %s" % (repr(float(row[0])).encode(), row[1]) if row else b""

    def read_tracker(self, after: int = 0) -> list[TrackerEntry]:
        """The tracker's entries after number `after`."""
        with self._using() as db:
            rows = db.execute("SELECT seq, at, body FROM tracker WHERE seq > ? ORDER BY seq", (after,))
            decode = _tracker_decoder().decode
            return [TrackerEntry(seq, at, decode(body)) for seq, at, body in rows]

    def append_tracker(self, entries: Sequence[TrackerEntry], *, after: int, followed: Followed | None = None) -> None:
        """Writes the entries after number `after`, and how far they follow a session; all of it or nothing."""
        with self._transaction() as db:
            newest = db.execute("SELECT max(seq) FROM tracker").fetchone()[0] or 0
            if newest != after or (followed and self.followed(followed.session) != followed.before):
                raise Behind
            rows = [(entry.seq, entry.at, msgspec.json.encode(entry.event)) for entry in entries]
            db.executemany("INSERT INTO tracker VALUES (?, ?, ?)", rows)
            if followed:
                self.mark_followed(followed.session, followed.seq)

    def mark_followed(self, session: SessionId, seq: int) -> None:
        """Records that the tracker knows of the session up to this entry."""
        with self._using() as db:
            db.execute("INSERT OR REPLACE INTO followed VALUES (?, ?)", (session, seq))

    def followed(self, session: SessionId) -> int:
        """The entry of a session up to which the tracker knows of it."""
        with self._using() as db:
            row = db.execute("SELECT seq FROM followed WHERE session = ?", (session,)).fetchone()
        return row[0] if row else 0

    def holder(self, session: SessionId) -> ProcessIdentity | None:
        """The process of the session's engine, if one has not released it."""
        with self._using() as db:
            row = db.execute("SELECT pid, started, boot FROM engines WHERE session = ?", (session,)).fetchone()
        with self._decoding():
            return ProcessIdentity(pid=row[0], started=int(row[1] or 0), boot=row[2]) if row else None

    def take(self, session: SessionId, holder: ProcessIdentity) -> None:
        values = (session, holder.pid, str(holder.started), holder.boot)
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO engines VALUES (?, ?, ?, ?)", values)

    def held(self) -> set[SessionId]:
        """The sessions that an engine has not released: it runs, or it ended before it had done everything."""
        with self._using() as db:
            return {SessionId(name) for (name,) in db.execute("SELECT session FROM engines")}

    def release(self, session: SessionId) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM engines WHERE session = ?", (session,))

    def projected(self, session: SessionId, name: str) -> dict[str, int]:
        """The digests of the texts that iterdev may have written to a file, with the entry that each was made after.

        There are two if a process was killed between `intend` and `settle`.
        """
        with self._using() as db:
            rows = db.execute("SELECT digest, seq FROM projections WHERE session = ? AND name = ?", (session, name))
            return dict(rows.fetchall())

    def intend(self, session: SessionId, name: str, digest: str, *, seq: int) -> None:
        """Records a text before it is written: after a crash it must not be taken for a person's edit."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO projections VALUES (?, ?, ?, ?)", (session, name, digest, seq))

    def settle(self, session: SessionId, name: str, digest: str) -> None:
        """Records that the text was written, so that any other one is a person's edit."""
        values = (session, name, digest)
        with self._transaction() as db:
            db.execute("DELETE FROM projections WHERE session = ? AND name = ? AND digest != ?", values)

    def projected_files(self, session: SessionId) -> dict[str, tuple[str, int]]:
        """The digest of each file that iterdev wrote, with the entry that it was made after."""
        with self._using() as db:
            rows = db.execute("SELECT name, digest, seq FROM projections WHERE session = ?", (session,))
            return {name: (digest, seq) for name, digest, seq in rows}

    def record_files(self, session: SessionId, digests: Mapping[str, str], *, seq: int) -> None:
        """Records how files are written now."""
        self.forget_files(session, digests)
        with self._transaction() as db:
            rows = [(session, name, digest, seq) for name, digest in digests.items()]
            db.executemany("INSERT OR REPLACE INTO projections VALUES (?, ?, ?, ?)", rows)

    def forget_files(self, session: SessionId, names: Iterable[str]) -> None:
        with self._transaction() as db:
            rows = [(session, name) for name in names]
            db.executemany("DELETE FROM projections WHERE session = ? AND name = ?", rows)

    def problems(self) -> list[str]:
        """What SQLite's integrity check reports, and what of the content cannot be read although SQLite can."""
        try:
            with self._using() as db:
                rows = db.execute("PRAGMA integrity_check").fetchall()
            if found := [row[0] for row in rows if row[0] != "ok"]:
                return found
            for session in self.sessions():
                self.read(session)
            self.read_tracker()
        except Damaged as damage:
            return [damage.message]
        return []

    def _update_side_tables(self, session: SessionId, entry: Entry) -> None:
        match entry.event:
            case events.SessionStarted():
                self._db.execute("INSERT INTO sessions VALUES (?, ?, ?)", (session, entry.at, b""))
            case events.AttemptStarted(task):
                # The primary key rejects a second open attempt.
                self._db.execute("INSERT INTO open_attempts VALUES (?, ?)", (session, task))
            case events.AttemptEnded(task=task) | events.TaskReported(task=task):
                self._close_attempts(session, [task])
            case events.RollbackStarted(undone=undone):
                self._close_attempts(session, undone)
            case _:
                pass

    def _close_attempts(self, session: SessionId, tasks: Iterable[TaskId]) -> None:
        rows = ((session, task) for task in tasks)
        self._db.executemany("DELETE FROM open_attempts WHERE session = ? AND task = ?", rows)

    def _migrate(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > len(MIGRATIONS):
            raise HostError(
                f'"{self.path}" was written by a newer iterdev (format {version}, this one knows {len(MIGRATIONS)})',
                hint="upgrade iterdev",
            )
        if version == len(MIGRATIONS):
            return
        with self._transaction():
            version = self._db.execute("PRAGMA user_version").fetchone()[0]
            for number, script in enumerate(MIGRATIONS[version:], version + 1):
                # executescript() would commit the transaction.
                for statement in filter(str.strip, script.split(";")):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {number}")

    @contextmanager
    def _decoding(self) -> Iterator[None]:
        """Makes values of rows that were read; SQLite does not notice if a byte inside of a row has changed."""
        try:
            yield
        except (ValueError, LookupError, TypeError, OverflowError, RecursionError) as error:
            raise _damage(error, self.path) from error

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time; its errors become a `HostError`."""
        with self._lock:
            try:
                yield self._db
            except sqlite3.IntegrityError:
                raise
            except (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError) as error:
                raise _explained(error, self.path) from error

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._using() as db:
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                # SQLite has rolled back by itself when the disk is full.
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise


def _connect(path: Path) -> sqlite3.Connection:
    if _is_read_only(path):
        return _connect_read_only(path)
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _connect_read_only(path: Path) -> sqlite3.Connection:
    """Where SQLite may write no file beside the journal.

    It could then not read what a killed process left in the write-ahead log either, so that is read from a copy.
    """
    log = path.with_name(f"{path.name}-wal")
    if not log.exists() or not log.stat().st_size:
        uri = f"{path.absolute().as_uri()}?immutable=1"
        return sqlite3.connect(uri, isolation_level=None, check_same_thread=False, uri=True)
    import shutil  # noqa: PLC0415 - rarely needed, and slow to import
    import tempfile  # noqa: PLC0415

    memory = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    with tempfile.TemporaryDirectory() as folder:
        for file in (path, log):
            shutil.copyfile(file, Path(folder, file.name))
        with closing(sqlite3.connect(Path(folder, path.name))) as copy:
            copy.backup(memory)
    memory.execute("PRAGMA query_only = ON")
    return memory


def _make_private(path: Path) -> None:
    """Lets only the owner read the journal. The files that SQLite puts beside it get the mode of this one."""
    if _is_read_only(path):
        return
    # A file that is there is not opened: closing it would give up the locks that other connections of this process hold
    # on it, and another process would then take itself for the last one and delete the write-ahead log that they use.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    for file in (path, *(path.with_name(f"{path.name}-{suffix}") for suffix in ("wal", "shm"))):
        with suppress(FileNotFoundError, PermissionError):
            mode = stat.S_IMODE(file.stat().st_mode)
            if mode & 0o077:
                file.chmod(mode & 0o700)


def _is_read_only(path: Path) -> bool:
    return path.exists() and not os.access(path.parent, os.W_OK)


def _write_ahead(db: sqlite3.Connection) -> None:
    """Switches the file to its write-ahead log. SQLite does not wait for a lock here, so this function does."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
            time.sleep(PAUSE)
        else:
            return


def _explained(error: Exception, path: Path) -> HostError:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    # SQLite does not look at the text that it stores; Python cannot read it if it is not UTF-8.
    unreadable = "malformed" in text or "decode" in text
    if isinstance(error, OSError | sqlite3.OperationalError) and not unreadable:
        hint = (
            "free some space, then run `iterdev resume`"
            if "full" in text
            else f"check the permissions of {path.parent}"
        )
        return HostError(f'The journal "{path}" cannot be used: {text}', hint=hint)
    return _damage(error, path)


def _damage(error: Exception, path: Path) -> Damaged:
    return Damaged(f'The journal "{path}" is damaged: {error}', hint="run `iterdev doctor --fix` to rebuild it")


@cache
def _tracker_decoder() -> msgspec.json.Decoder[TrackerEvent]:
    """Made when it is used: sessions are read without it."""
    return msgspec.json.Decoder(TrackerEvent)


class EventCodec:
    """Events as they are stored.

    To decode all kinds takes longer to prepare than a short session to read, so each kind has a decoder of its own,
    which is made when the first event of the kind is read.
    """

    def __init__(self, teams: Mapping[str, Team] = TEAMS) -> None:
        kinds = (*get_args(KernelEvent), *(kind for team in teams.values() for kind in team.event_types))
        self._fields = {team.task_fields.__struct_config__.tag: team.task_fields for team in teams.values()}
        self._kinds = {b'%s%s"' % (TAG, str(kind.__struct_config__.tag).encode()): kind for kind in kinds}
        self._decoders: dict[bytes, msgspec.json.Decoder[Event]] = {}
        self.encode: Callable[[Event], bytes] = msgspec.json.Encoder().encode

    def decode(self, body: bytes) -> Event:
        tag = body[: body.find(b'"', len(TAG)) + 1]
        return (self._decoders.get(tag) or self._decoder(tag)).decode(body)

    def _decoder(self, tag: bytes) -> msgspec.json.Decoder[Event]:
        kind: Any = self._kinds.get(tag)
        if kind is None:
            # It was not written here: the decoder of all kinds reads it, or says what is wrong.
            tag, kind = b"", Union[tuple(self._kinds.values())]  # noqa: UP007 - made at run time
        if tag not in self._decoders:
            self._decoders[tag] = msgspec.json.Decoder(kind, dec_hook=self._task_fields)
        return self._decoders[tag]

    def encodable(self, event: Event) -> Event:
        """The event without what JSON in UTF-8 cannot express."""
        return self.decode(msgspec.json.encode(encodable_document(msgspec.to_builtins(event))))

    def _task_fields(self, kind: type, value: Any) -> object:  # noqa: ANN401 - the hook's own signature
        return msgspec.convert(value, self._fields[value["type"]]) if kind is TaskFields else value
