"""The journal: one SQLite file per repository, one row per event, and nothing in it is ever changed.

Several processes may write. Each entry has its number within the session, so whoever decided on an old state is
told that it is behind instead of writing over what it has not seen.
"""

import os
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from iterdev.core.errors import HostError
from iterdev.core.session.events import AttemptEnded, AttemptStarted, Entry, Event, Session, SessionStarted
from iterdev.core.types import SessionId

NAME = "iterdev.db"
BUSY_SECONDS = 30
PAUSE = 0.01

MIGRATIONS = (
    """
    CREATE TABLE sessions (id TEXT PRIMARY KEY, folder TEXT NOT NULL, created REAL NOT NULL) STRICT;
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
)


class Behind(Exception):
    """Somebody else wrote first; read on and decide again."""


class Damaged(HostError):
    """The file is there, but it is not a journal that can be read."""


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The process that last took a session's engine."""

    pid: int
    started: str
    boot: str


class Journal:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
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

    def read(self, session: SessionId, after: int = 0, *, since: float = 0) -> list[Entry]:
        """The entries behind number `after`, and not older than `since`."""
        with self._using() as db:
            rows = db.execute(
                "SELECT seq, at, body FROM events WHERE session = ? AND seq > ? AND at >= ? ORDER BY seq",
                (session, after, since),
            )
            return [Entry(seq, at, decode(body)) for seq, at, body in rows]

    def append(self, session: SessionId, events: Sequence[Event], *, at: float, after: int) -> list[Entry]:
        """Writes the events behind entry number `after`; all of them or none."""
        entries = [Entry(after + number, at, event) for number, event in enumerate(events, 1)]
        with self._transaction() as db:
            newest = db.execute("SELECT max(seq) FROM events WHERE session = ?", (session,)).fetchone()[0] or 0
            if newest != after:
                raise Behind
            for entry in entries:
                self._note(session, entry)
            db.executemany(
                "INSERT INTO events VALUES (?, ?, ?, ?)",
                [(session, entry.seq, at, encode(entry.event)) for entry in entries],
            )
        return entries

    def newest(self, session: SessionId) -> int:
        """The number of the last entry."""
        with self._using() as db:
            row = db.execute("SELECT max(seq) FROM events WHERE session = ?", (session,)).fetchone()
        return row[0] or 0

    def has_news(self, session: SessionId, after: int) -> bool:
        return self.newest(session) > after

    def holder(self, session: SessionId) -> Holder | None:
        with self._using() as db:
            row = db.execute("SELECT pid, started, boot FROM engines WHERE session = ?", (session,)).fetchone()
        return Holder(pid=row[0], started=row[1], boot=row[2]) if row else None

    def take(self, session: SessionId, holder: Holder) -> None:
        with self._transaction() as db:
            db.execute(
                "INSERT OR REPLACE INTO engines VALUES (?, ?, ?, ?)",
                (session, holder.pid, holder.started, holder.boot),
            )

    def release(self, session: SessionId) -> None:
        with self._transaction() as db:
            db.execute("DELETE FROM engines WHERE session = ?", (session,))

    def projected(self, session: SessionId, name: str) -> dict[str, int]:
        """The digests of the texts that iterdev may have left in a file, with the entry that each was made after.

        It is one, or two if nobody knows whether the last one was still written.
        """
        with self._using() as db:
            rows = db.execute("SELECT digest, seq FROM projections WHERE session = ? AND name = ?", (session, name))
            return dict(rows.fetchall())

    def intend(self, session: SessionId, name: str, digest: str, *, seq: int) -> None:
        """Remembers a text before it is written: a crash in between must not look like a person's edit."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO projections VALUES (?, ?, ?, ?)", (session, name, digest, seq))

    def settle(self, session: SessionId, name: str, digest: str) -> None:
        """The text was written; what the file held before is not ours any more."""
        with self._transaction() as db:
            db.execute(
                "DELETE FROM projections WHERE session = ? AND name = ? AND digest != ?", (session, name, digest)
            )

    def problems(self) -> list[str]:
        """What SQLite itself finds wrong with the file."""
        try:
            with self._using() as db:
                rows = db.execute("PRAGMA integrity_check").fetchall()
        except Damaged as damage:
            return [damage.message]
        return [row[0] for row in rows if row[0] != "ok"]

    def _note(self, session: SessionId, entry: Entry) -> None:
        """Keeps the side tables in step, within the same transaction."""
        match entry.event:
            case SessionStarted(Session(id=name, folder=folder)):
                self._db.execute("INSERT INTO sessions VALUES (?, ?, ?)", (name, folder, entry.at))
            case AttemptStarted(task):
                # The primary key refuses a second open attempt, whatever anybody decided.
                self._db.execute("INSERT INTO open_attempts VALUES (?, ?)", (session, task))
            case AttemptEnded(task):
                self._db.execute("DELETE FROM open_attempts WHERE session = ? AND task = ?", (session, task))
            case _:
                pass

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
                for statement in _statements(script):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA user_version = {number}")

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        """The connection, for one thread at a time; what fails beneath it is told as an error of the host."""
        with self._lock:
            try:
                yield self._db
            except sqlite3.IntegrityError:
                raise
            except (sqlite3.DatabaseError, msgspec.DecodeError) as error:
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
    """A repository that may only be looked at is opened so that SQLite needs no file beside the journal."""
    where = f"{path.absolute().as_uri()}?immutable=1" if _is_read_only(path) else path
    return sqlite3.connect(
        where, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=where is not path
    )


def _is_read_only(path: Path) -> bool:
    return path.exists() and not os.access(path.parent, os.W_OK)


def _write_ahead(db: sqlite3.Connection) -> None:
    """Switches the file to its write-ahead log. SQLite does not wait for others here, so that is done by hand."""
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


def _statements(script: str) -> Iterable[str]:
    return (statement for statement in script.split(";") if statement.strip())


def _explained(error: Exception, path: Path) -> HostError:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    if isinstance(error, OSError | sqlite3.OperationalError) and "malformed" not in text:
        hint = "free some space, then run `iterdev resume`" if "full" in text else "run `iterdev doctor`"
        return HostError(f'The journal "{path}" cannot be used: {text}', hint=hint)
    return Damaged(f'The journal "{path}" is damaged: {text}', hint="run `iterdev doctor` to rebuild it")


_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode(event: Event) -> bytes:
    return _encoder.encode(event)


def decode(body: bytes) -> Event:
    return _decoder.decode(body)
