"""The session folder: every file in it is generated from the journal and can be regenerated.

Two kinds of files have other writers too. A person may edit tasks.csv: such an edit is noticed by its digest and read
back. Agents and people may add to the board and the wisdom files: iterdev only appends to those.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from iterdev.core.append_only import AppendOnly
from iterdev.core.collaboration import wisdom
from iterdev.core.collaboration.messages import Message
from iterdev.core.errors import UserError
from iterdev.core.rules.landings import under_way
from iterdev.core.rules.table_edits import TableRow, claim, left_out
from iterdev.core.session.fold import replay
from iterdev.core.session.lifecycle import TIMELINE
from iterdev.core.session.state import State
from iterdev.core.types import Engine, TaskId
from iterdev.core.views import history
from iterdev.core.views.report import report
from iterdev.core.views.timeline import timeline, timeline_svg
from iterdev.store import atomic_files
from iterdev.store.journal import Journal
from iterdev.store.session_folder import discoveries, tasks_csv
from iterdev.store.session_folder.find import TABLE
from iterdev.store.session_folder.json_records import message_line, records
from iterdev.store.session_folder.task_texts import TaskTexts
from iterdev.teams.contract import Team

REFUSED = "tasks.refused.csv"
MESSAGES = ".msg/messages.jsonl"
FOLDERS = ("interactive", "wisdom", ".msg")
"""Those of every team."""


class Edited(Struct, frozen=True, kw_only=True):
    rows: tuple[TableRow, ...] = ()
    missing: tuple[TaskId, ...] = ()
    """Tasks whose rows had been deleted; the table gets them again."""


class Refused(Struct, frozen=True, kw_only=True):
    why: str
    kept: str
    """The name of the file that holds it now."""


Changes = tuple[list[tuple[TableRow, tuple[TableRow, ...]]], tuple[TaskId, ...]]
"""Rows that differ, each with what it was; and tasks without a row."""


class Projector:
    def __init__(self, folder: Path, journal: Journal, team: Team, *, exposed: bool = True) -> None:
        self._folder, self._team = folder, team
        self._journal = journal
        self._exposed = exposed
        """Whether agents can write to the folder."""
        self._written: dict[str, str] = {}
        self._tasks = TaskTexts(team)
        self._messages: AppendOnly[Message] | None = None
        """The messages that this object has written to their file."""
        self._shown: State | None = None
        """The state that the documents were made from."""
        self._wisdom = (0, 0)
        self._table: bytes | None = None
        """The content of tasks.csv when it was last written, or read back."""
        self._refused: set[str] = set()

    def prepare(self) -> None:
        """Creates the folders and files that are missing."""
        atomic_files.make_private(self._folder)
        for name in (*FOLDERS, *self._team.folders):
            atomic_files.make_folder(self._folder / name)
        for name in wisdom.FILES:
            atomic_files.create(self._folder / "wisdom" / f"{name}.md", f"# {name.capitalize()}\n\n")
        atomic_files.create(self._folder / discoveries.NAME, "")

    def write(self, state: State) -> None:
        """Brings every file up to date; files whose text is the same are left alone."""
        for name, text in self._texts(state):
            digest = _digest(text.encode())
            if self._written.get(name) == digest:
                continue
            if name == TABLE:
                self._write_table(state, text, digest)
            else:
                atomic_files.write(self._folder / name, text)
                self._written[name] = digest
        self._write_wave_files(state)
        self._extend_messages(state)
        self._extend_wisdom(state)
        self._shown = state

    def withdraw(self, before: State, after: State) -> None:
        """Deletes what the files say of work that a rollback undid, including in the wisdom files."""
        undone = self._team.documents(before).keys() - self._team.documents(after).keys()
        for name in (*undone, "results.csv", "context.md", TIMELINE):
            (self._folder / name).unlink(missing_ok=True)
        for name in wisdom.FILES:
            path = self._folder / "wisdom" / f"{name}.md"
            old, new = ({_without_evidence(line) for line in _wisdom_lines(state, name)} for state in (before, after))
            dropped = old - new
            if dropped and path.exists():
                lines = (atomic_files.read(path) or b"").decode("utf-8", "replace").splitlines()
                atomic_files.write(
                    path, "".join(f"{line}\n" for line in lines if _without_evidence(line) not in dropped)
                )

    def edits(
        self, state: State, *, strict: bool = True, beside_agents: bool = False, removable: bool = False
    ) -> Edited | Refused:
        """What a person changed in tasks.csv since iterdev last wrote it; each change is reported once.

        An unreadable table raises; unless `strict`, it may be half written and is read again later. While agents that
        can write to the folder run (`beside_agents`), one is refused that is unreadable or claims what no agent may.
        Missing rows are written again unless they are `removable`.
        """
        body = self._foreign_table(state)
        if body is None:
            return Edited()
        guarded = beside_agents and self._exposed
        try:
            rows, missing = self._changes(state, body, removable=removable)
        except UserError as error:
            if strict and guarded:
                return self._refuse(state, body, error.message)
            if strict and not beside_agents:
                raise
            return Edited()
        at_work = {state.tasks.plan[task].role for task in under_way(state)}
        if guarded and (claims := [words for row, known in rows if (words := claim(row, *known, at_work=at_work))]):
            return self._refuse(state, body, ", ".join(claims))
        if missing and not removable:
            self._write_again(state, body)
        else:
            self._table = body
        known = state.tasks.progress
        before = (known[row.edit.task.id].status if row.edit.task.id in known else None for row, _ in rows)
        return Edited(rows=tuple(map(left_out, (row for row, _ in rows), before)), missing=missing)

    def is_edited(self, state: State) -> bool:
        """Whether a person changed tasks.csv since iterdev last wrote it, and it was not read back yet."""
        return self._foreign_table(state) is not None

    def _refuse(self, state: State, body: bytes, why: str) -> Edited | Refused:
        """Keeps the edit in another file and writes the table again; the same edit is kept and reported once."""
        path, digest = self._folder / TABLE, _digest(body)
        known = digest in self._refused and path.is_file()
        kept = path if known else atomic_files.set_aside(path, self._folder / REFUSED)
        self._refused.add(digest)
        self._write_again(state, body)
        return Edited() if known else Refused(why=why, kept=kept.name)

    def _write_again(self, state: State, body: bytes) -> None:
        """Overwrites the given content of the table, unless it has changed in the meantime."""
        before, self._table = self._table, body
        text = tasks_csv.table(state, self._team)
        if not self._write_table(state, text, _digest(text.encode())):
            self._table = before

    def _foreign_table(self, state: State) -> bytes | None:
        """The content of tasks.csv if a person wrote it and it was not read back yet."""
        body = atomic_files.read(self._folder / TABLE)
        if body is None or body == self._table:
            return None
        known = self._table is None and _digest(body) in self._journal.projected(state.session.id, TABLE)
        if not known and body != tasks_csv.table(state, self._team).encode():
            return body
        self._table = body
        return None

    def _changes(self, state: State, body: bytes, *, removable: bool) -> Changes:
        """What differs both from the table that the person edited and from the state."""
        try:
            text = body.decode()
        except UnicodeDecodeError as error:
            raise UserError(f"{TABLE} is not UTF-8 text: {error}", hint=f"save {TABLE} as UTF-8") from error
        before = self._rows(self._table.decode() if self._table is not None else self._last_projection(state))
        expected = [state.tasks.plan[task] for task in before if task in state.tasks.plan]
        theirs = tasks_csv.parse(text, self._team, f"{state.session.folder}/{TABLE}", () if removable else expected)
        now = self._rows(tasks_csv.table(state, self._team))
        ids = ((row, row.edit.task.id) for row in theirs)
        known = ((row, tuple(rows[task] for rows in (before, now) if task in rows)) for row, task in ids)
        own = {row.edit.task.id for row in theirs}
        missing = tuple(task.id for task in expected if task.id not in own)
        return [(row, same) for row, same in known if row not in same], missing

    def _rows(self, table: str) -> dict[TaskId, TableRow]:
        return {row.edit.task.id: row for row in tasks_csv.parse(table, self._team)}

    def _last_projection(self, state: State) -> str:
        """The table that the previous engine wrote; the older one if it is not known which of two it was."""
        entries = self._journal.projected(state.session.id, TABLE).values()
        written = self._journal.read(state.session.id)[: min(entries)] if entries else []
        return tasks_csv.table(replay(written, self._team) if written else state, self._team)

    def _write_table(self, state: State, text: str, digest: str) -> bool:
        """Never writes over a person's edit that has not been read back yet."""
        if self._foreign_table(state) is not None:
            return False
        self._journal.intend(state.session.id, TABLE, digest, seq=state.seq)
        atomic_files.write(self._folder / TABLE, text, durable=True)
        self._journal.settle(state.session.id, TABLE, digest)
        self._table, self._written[TABLE] = text.encode(), digest
        return True

    def _texts(self, state: State) -> Iterator[tuple[str, str]]:
        self._tasks.update(state)
        table = self._tasks.table(state)
        yield TABLE, table
        yield from records(state, self._team, self._tasks.entries(state)).items()
        yield from self._team.documents(state, self._shown).items()
        if state.lifecycle.is_finished:
            yield "results.csv", table
            picture = self._timeline(state)
            if picture:
                yield TIMELINE, picture
            yield "context.md", report(state, self._team, timeline=TIMELINE if picture else "")

    def _timeline(self, state: State) -> str:
        """The picture of all attempts; a session that was rebuilt from its folder has none."""
        entries = self._journal.read(state.session.id)
        past = history.evolve(history.History(), (entry for entry in entries if entry.seq <= state.seq), self._team)
        drawn = timeline(past, state.lifecycle.finished_at or state.updated_at)
        return timeline_svg(drawn, f"Time line of {state.session.id}") if drawn.rows else ""

    def _write_wave_files(self, state: State) -> None:
        wanted: dict[str, str] = {}
        wave = state.tasks.wave
        if state.session.engine is Engine.wave and wave:
            wanted[f"wave-{wave}.csv"] = tasks_csv.wave_file(state, self._team, wave)
            if any(task.wave == wave and progress.status.is_final for task, progress in state.tasks.rows()):
                wanted[f"wave-{wave}-results.csv"] = tasks_csv.wave_results(state, self._team, wave)
        for stale in self._folder.glob("wave-*.csv"):
            if stale.name not in wanted:
                stale.unlink()
        for name, text in wanted.items():
            atomic_files.write(self._folder / name, text)

    def _extend_messages(self, state: State) -> None:
        """Appends the new messages; a file that has other ones is written again."""
        known, now = self._messages, state.messages.sent
        if known == now:
            return
        path = self._folder / MESSAGES
        if known and now.begins_with(known) and path.exists():
            atomic_files.extend(path, "".join(f"{message_line(message)}\n" for message in now[len(known) :]))
        else:
            atomic_files.write(path, "".join(f"{message_line(message)}\n" for message in now))
        self._messages = now

    def _extend_wisdom(self, state: State) -> None:
        """Appends what is new."""
        seen = (len(state.wisdom.notes), len(state.wisdom.rejected))
        if seen == self._wisdom:
            return
        for name in wisdom.FILES:
            wanted = list(_wisdom_lines(state, name))
            path = self._folder / "wisdom" / f"{name}.md"
            known = (atomic_files.read(path) or b"").decode("utf-8", "replace").splitlines() if wanted else ()
            present = {text for line in known for text in (_without_evidence(line), _as_entry(line))}
            new: dict[str, str] = {}
            for line in wanted:
                if _without_evidence(line) not in present:
                    new.setdefault(_without_evidence(line), line)
            if new:
                atomic_files.extend(path, "".join(f"{line}\n" for line in new.values()))
        self._wisdom = seen


def _wisdom_lines(state: State, file: str) -> Iterator[str]:
    notes = [note for note in state.wisdom.notes if note.file == file]
    for note in notes:
        yield f"- {note.text} ({', '.join(part for part in (note.id, note.task, note.commit[:7]) if part)})"
    for note in notes:
        if note.id in state.wisdom.rejected:
            yield f"- {note.id} is rejected ({state.wisdom.rejected[note.id] or 'no reason given'})"


def _as_entry(line: str) -> str:
    """A line of a person in the form in which iterdev would write it."""
    return f"- {' '.join(line.strip().removeprefix('-').removeprefix('*').removeprefix('+').split())}"


def _without_evidence(line: str) -> str:
    """A line without its evidence, whose format has changed between versions."""
    return line.rpartition(" (")[0]


def table_digest(folder: Path) -> str:
    """Identifies the content of tasks.csv."""
    return _digest(atomic_files.read(folder / TABLE) or b"")


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
