"""The task table of a session, for an editor that is not a text editor: cells, and what is wrong with which row."""

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence

from msgspec import Struct

from iterdev.app.answer import take_over_plan
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.host import text_files
from iterdev.store.session_folder.find import TABLE
from iterdev.store.session_folder.tasks_csv import WrongTable

DRAFT = "tasks.page.csv"
"""The copy of tasks.csv that a page writes before the table is replaced."""
EDITABLE = ("id", "role", "deps", "title", "description")
"""The columns that a person plans with; the others are kept as they are."""


class PlanRow(Struct, frozen=True):
    cells: Mapping[str, str]
    status: str

    @property
    def is_open(self) -> bool:
        """Whether a change of the row can still mean something."""
        return self.status in {"", "pending"}


class PlanTable(Struct, frozen=True, kw_only=True):
    columns: tuple[str, ...]
    rows: tuple[PlanRow, ...]
    digest: str
    """Of the file that it was read from."""
    roles: tuple[str, ...]


class PlanChanged(Exception):
    """The table has changed since it was read."""


class WrongRow(UserError):
    """One row of the table is wrong."""

    def __init__(self, error: UserError, row: int | None) -> None:
        super().__init__(error.message, hint=error.hint)
        self.row = row


def read_plan(repository: Repository, session: SessionId) -> PlanTable:
    text = _text(repository, session)
    records = list(csv.DictReader(io.StringIO(text)))
    roles = repository.team(repository.state(session)).workers
    return PlanTable(
        columns=EDITABLE,
        rows=tuple(
            PlanRow({name: row.get(name) or "" for name in EDITABLE}, row.get("status") or "") for row in records
        ),
        digest=_digest(text),
        roles=tuple(roles),
    )


def save_plan(repository: Repository, session: SessionId, rows: Sequence[Mapping[str, str]], digest: str) -> None:
    """Replaces the table by one with these rows, as an edit of tasks.csv does; what is wrong with it is raised.

    Columns that cannot be edited here keep their cells, by the place of the row if it has one of before.
    """
    text = _text(repository, session)
    if _digest(text) != digest:
        raise PlanChanged
    rows_before = csv.DictReader(io.StringIO(text))
    header = rows_before.fieldnames or ()
    before = {row.get("id", ""): row for row in rows_before}
    out, begins = io.StringIO(), list[int]()
    writer = csv.DictWriter(out, header, quoting=csv.QUOTE_ALL, lineterminator="\n", extrasaction="ignore")
    writer.writeheader()
    for row in rows:
        begins.append(out.getvalue().count("\n") + 1)
        writer.writerow({**dict.fromkeys(header, ""), **before.get(row.get("id", ""), {}), **row})
    draft = repository.folder(repository.state(session)) / DRAFT
    draft.write_text(out.getvalue(), encoding="utf-8")
    try:
        take_over_plan(repository, session, draft)
    except WrongTable as error:
        raise WrongRow(error, begins.index(error.line) if error.line in begins else None) from error
    except UserError as error:
        raise WrongRow(error, None) from error
    finally:
        draft.unlink(missing_ok=True)


def _text(repository: Repository, session: SessionId) -> str:
    path = repository.folder(repository.state(session)) / TABLE
    try:
        return text_files.read(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f'There is no table of "{session}" yet', hint=f"iterdev status {session}") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
