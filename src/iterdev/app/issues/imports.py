"""Makes issues, or a task table, of another tool's file."""

import csv
import io
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core.errors import UserError
from iterdev.core.types import Status
from iterdev.engine.issue_tracker import edit_tracker
from iterdev.engine.repository import STATE, Repository
from iterdev.host import clock, text_files
from iterdev.store import atomic_files
from iterdev.store.session_folder import tasks_csv
from iterdev.tracker import importing
from iterdev.tracker.events import IssueCreated, IssueDescribed
from iterdev.tracker.importers.contract import Import, ImportedTask
from iterdev.tracker.importing import KNOWN

FOLDER = f"{STATE}/imports"
COLUMNS = ("id", "title", "description", "deps", "status")
"""The columns of a table that are always written."""


class Imported(Struct, frozen=True, kw_only=True):
    tool: str
    added: tuple[str, ...] = ()
    updated: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    table: str | None = None
    """The task table, if the file has tasks and no issues."""
    tasks: int = 0
    notes: tuple[str, ...] = ()
    """What could not be carried over."""


def import_file(repository: Repository, path: Path) -> Imported:
    columns = repository.default_team.columns.order
    found = importing.read(_text(path), path.as_posix(), columns, clock.now())
    if not found.issues and not found.tasks:
        raise UserError(f'There is nothing in "{path}" to import', hint="; ".join(found.notes) or f"known are: {KNOWN}")
    found = msgspec.convert(repository.redact.everywhere(msgspec.to_builtins(found)), Import)
    return _table(repository, path, found) if found.tasks else _issues(repository, found)


def _issues(repository: Repository, found: Import) -> Imported:
    with edit_tracker(repository) as log:
        events = log.transact(lambda tracker, _: tuple(importing.imported(tracker, found)))
    added = [event.issue.id for event in events if isinstance(event, IssueCreated)]
    updated = [event.issue_id for event in events if isinstance(event, IssueDescribed)]
    touched = {*added, *updated}
    return Imported(
        tool=found.tool,
        added=tuple(added),
        updated=tuple(updated),
        unchanged=tuple(issue.id for issue in found.issues if issue.id not in touched),
        notes=found.notes,
    )


def _table(repository: Repository, path: Path, found: Import) -> Imported:
    """The table is checked as `run --tasks` will do it."""
    text = _csv(found.tasks)
    tasks_csv.parse(text, repository.default_team, path.name)
    repository.prepare()
    place = repository.top / FOLDER / f"{path.stem}.csv"
    atomic_files.write(place, text)
    return Imported(
        tool=found.tool, table=str(place.relative_to(repository.top)), tasks=len(found.tasks), notes=found.notes
    )


def _csv(tasks: tuple[ImportedTask, ...]) -> str:
    more = list(dict.fromkeys(name for task in tasks for name in task.cells))
    out = io.StringIO()
    writer = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n")
    writer.writerow([*COLUMNS, *more])
    for task in tasks:
        status = Status.completed if task.is_done else Status.pending
        own = [task.id, task.title, task.description, ";".join(task.deps), status]
        writer.writerow([*own, *(task.cells.get(name, "") for name in more)])
    return out.getvalue()


def _text(path: Path) -> str:
    try:
        return text_files.read(path)
    except UnicodeDecodeError as error:
        raise UserError(f'"{path}" is not UTF-8 text: {error}', hint="save it as UTF-8") from error
    except OSError as error:
        raise UserError(f'Cannot read "{path}": {error.strerror}', hint="iterdev import FILE") from error
