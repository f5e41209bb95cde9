"""Finds the session folders of a repository. Every command does, so nothing is imported that reads or writes them."""

from pathlib import Path

from iterdev.core import ids
from iterdev.core.encodable import encodable
from iterdev.core.types import Engine, SessionId

TABLE = "tasks.csv"
LEDGER = "task-ledger.json"
OLDER = ("team-session.json", "session.json", LEDGER, "shared-memory.json")
"""Each of them shows that a folder without a table is that of a session, of an edition that had no tables."""


def folders(top: Path) -> list[tuple[Engine, Path]]:
    """Every session folder of a repository, oldest first: those with a table, and those of older editions."""
    places = ((engine, top.glob(ids.folder(engine, SessionId("*")))) for engine in Engine)
    found = [(engine, folder) for engine, folders in places for folder in folders if _is_session(folder)]
    return sorted(found, key=lambda pair: _changed_at(pair[1]))


def has_older_files(folder: Path) -> bool:
    return any((folder / name).is_file() for name in OLDER)


def _is_session(folder: Path) -> bool:
    """A folder whose name is not UTF-8 is not one of iterdev's, and its name could not be a session's id."""
    return folder.name == encodable(folder.name) and ((folder / TABLE).is_file() or has_older_files(folder))


def _changed_at(folder: Path) -> float:
    table = folder / TABLE
    return (table if table.is_file() else folder).stat().st_mtime
