"""tasks.csv of a session of Claude-Code-Workflow: a task table, or the issues that the session was about."""

import csv
import io
from collections.abc import Collection, Mapping, Sequence

from iterdev.core.errors import UserError
from iterdev.core.formatting import counted
from iterdev.tracker.importers.contract import Import, ImportedTask, Losses, sections
from iterdev.tracker.issues import Description, Issue, checked_id

TOOL = "Claude-Code-Workflow"
OWN = ("id", "title", "description", "deps", "status")
ISSUES = "issue_ids"


def read(text: str, columns: Collection[str], at: float) -> Import:
    """`columns` are those that a task table of this program has."""
    rows = _rows(text)
    if rows and ISSUES in rows[0]:
        return _issues(rows, at)
    losses = Losses()
    unknown = [name for name in (rows[0] if rows else {}) if name not in columns]
    if unknown:
        losses.say(f"columns that a task table does not have are left out: {', '.join(unknown)}")
    tasks = tuple(
        ImportedTask(
            id=row["id"].strip(),
            title=row.get("title") or row["id"],
            description=row["description"],
            deps=tuple(filter(None, map(str.strip, row.get("deps", "").split(";")))),
            is_done=row.get("status") == "completed",
            cells={name: cell for name, cell in row.items() if name in columns and name not in OWN},
        )
        for row in rows
    )
    if failed := [row["id"] for row in rows if row.get("status") in {"failed", "skipped"}]:
        losses.say(f"failed or skipped there, pending here: {', '.join(failed)}")
    return Import(tool=TOOL, tasks=tasks, notes=losses.notes())


def _rows(text: str) -> list[dict[str, str]]:
    try:
        records = [record for record in csv.reader(io.StringIO(text.removeprefix("\ufeff")), strict=True) if record]
    except csv.Error as error:
        raise UserError(f"The table cannot be read: {error}", hint="cells are quoted with double quotes") from error
    header = records[0] if records else []
    if missing := [name for name in ("id", "description") if name not in header]:
        raise UserError(f'The table has no column "{missing[0]}"', hint=f"its columns: {', '.join(header) or 'none'}")
    return [_row(header, record, line) for line, record in enumerate(records[1:], 2)]


def _row(header: Sequence[str], record: Sequence[str], line: int) -> dict[str, str]:
    # Rows of that tool's own example have one empty cell too many.
    cells = record[: len(header)] if not any(record[len(header) :]) else record
    if len(cells) != len(header):
        given, expected = counted(len(record), "cell"), counted(len(header), "column")
        raise UserError(f"Row {line} of the table has {given} for {expected}", hint=f"fix row {line}")
    return dict(zip(header, cells, strict=True))


def _issues(rows: Sequence[Mapping[str, str]], at: float) -> Import:
    """Every issue that a row names, with what was found out about it."""
    found: dict[str, list[str]] = {}
    for row in rows:
        for name in filter(None, map(str.strip, row[ISSUES].split(";"))):
            said = row.get("findings", "")
            found.setdefault(checked_id(name), []).extend([f"{row['id']}: {said}"] if said else [])
    issues = tuple(
        Issue(
            id=name,
            description=Description(title=name, context=sections(("Found out before", "\n".join(said)))),
            created_at=at,
            updated_at=at,
        )
        for name, said in found.items()
    )
    note = "its tasks are not carried over: a new session plans the issues again, and titles are in the other tracker"
    return Import(tool=TOOL, issues=issues, notes=(note,))
