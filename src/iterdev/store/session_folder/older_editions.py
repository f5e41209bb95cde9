"""Session folders of editions that had no tasks.csv: their tasks are in task-ledger.json, or were never written."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import UserError
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.types import Status
from iterdev.store import atomic_files
from iterdev.store.session_folder import tasks_csv
from iterdev.store.session_folder.find import LEDGER
from iterdev.teams.contract import Team

COLUMNS = ("id", "title", "description", "role", "pipeline", "deps", "status")

Document = Mapping[str, object]


class OlderTable(Struct, frozen=True, kw_only=True):
    rows: tuple[TableRow, ...] = ()
    warning: str
    """What is known of the tasks, and what it means for continuing the session."""


def read(folder: Path, document: Document, team: Team) -> OlderTable:
    """The tasks of a session; `document` are its facts, such as its pipeline and the tasks that were completed."""
    rows, problem = _ledger_rows(folder, document, team)
    if rows:
        order = f"its tasks are those of {LEDGER}, one after the other"
        return OlderTable(
            rows=rows, warning=f"this session has no tasks.csv; {order}, and what was not completed is run again"
        )
    completed = document.get("completed_tasks")
    done = ", ".join(map(str, completed)) if isinstance(completed, list) and completed else ""
    before = f"; completed before: {done}" if done else ""
    why = f" ({problem})" if problem else ""
    return OlderTable(
        warning=f"this session has no tasks.csv and no tasks in {LEDGER}{why}; going on plans them again{before}"
    )


def _ledger_rows(folder: Path, document: Document, team: Team) -> tuple[tuple[TableRow, ...], str]:
    try:
        ledger = json.loads(atomic_files.read(folder / LEDGER) or b"")
    except (OSError, ValueError, RecursionError):
        return (), ""
    tasks = ledger.get("tasks") if isinstance(ledger, dict) else None
    entries = [entry for entry in tasks if isinstance(entry, dict)] if isinstance(tasks, list) else []
    named = document.get("pipeline")
    pipeline = named if isinstance(named, str) and named in team.pipelines else ""
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    writer.writerows(_cells(entries, pipeline, team))
    try:
        return tuple(tasks_csv.parse(out.getvalue(), team, f"{folder.name}/{LEDGER}")), ""
    except UserError as error:
        return (), error.message


def _cells(entries: Sequence[Document], pipeline: str, team: Team) -> Iterator[tuple[str, ...]]:
    """One row per entry. A ledger has no dependencies, so that each task waits for the one before it."""
    before = ""
    for entry in entries:
        name, title = str(entry.get("id", "")), str(entry.get("title") or "")
        role = team.role_of(name) or str(entry.get("owner", ""))
        status = Status.completed if entry.get("status") == Status.completed else Status.pending
        yield name, title, title or name, role, pipeline, before, status
        before = name
