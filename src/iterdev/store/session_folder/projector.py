"""The session folder: every file in it is made from the journal and can be made again.

Two kinds of files are not only ours. A person may edit tasks.csv: such an edit is noticed by its digest, read back,
and wins. Agents and people may add to the board and the wisdom files: those are only ever extended.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from iterdev.core.collaboration.messages import Message
from iterdev.core.errors import UserError
from iterdev.core.rules.table_edits import TableRow, claim
from iterdev.core.session.fold import replay
from iterdev.core.session.state import State
from iterdev.core.types import Engine, TaskId
from iterdev.core.views.report import report
from iterdev.store import atomic_files
from iterdev.store.journal import Journal
from iterdev.store.session_folder import discoveries, tasks_csv
from iterdev.store.session_folder.json_records import message_line, records
from iterdev.teams.contract import Team

TABLE = "tasks.csv"
REFUSED = "tasks.refused.csv"
MESSAGES = ".msg/messages.jsonl"
FOLDERS = ("interactive", "wisdom", "design", "code", "verify", "review", ".msg")
WISDOM = {
    "learnings": "# Learnings\n\n",
    "decisions": "# Decisions\n\n",
    "conventions": "# Conventions\n\n",
    "issues": "# Issues\n\n",
}


class Edited(Struct, frozen=True, kw_only=True):
    """What was changed in tasks.csv."""

    rows: tuple[TableRow, ...] = ()
    missing: tuple[TaskId, ...] = ()
    """Tasks whose rows were gone; the table gets them again."""


class Refused(Struct, frozen=True, kw_only=True):
    """An edit of tasks.csv that was not taken over."""

    why: str
    kept: str
    """The name of the file that holds it now."""


class _Changes(Struct, frozen=True):
    """Rows that differ, each with what it was; and tasks without a row."""

    rows: list[tuple[TableRow, tuple[TableRow, ...]]]
    missing: tuple[TaskId, ...]


class Projector:
    """Keeps one session folder in step with the state."""

    def __init__(self, folder: Path, journal: Journal, team: Team, *, exposed: bool = True) -> None:
        self._folder, self._team = folder, team
        self._journal = journal
        self._exposed = exposed
        """Whether agents can write to the folder."""
        self._written: dict[str, str] = {}
        self._messages: tuple[Message, ...] | None = None
        """What the file of the bus holds, as far as it was written here."""
        self._shown: State | None = None
        """The state that the documents tell of."""
        self._wisdom = (0, 0)
        self._table: bytes | None = None
        """What tasks.csv held when it was last written, or read back."""
        self._refused: set[str] = set()

    def prepare(self) -> None:
        """Makes what is missing and leaves what is there."""
        for name in FOLDERS:
            atomic_files.make_folder(self._folder / name)
        for name, heading in WISDOM.items():
            atomic_files.create(self._folder / "wisdom" / f"{name}.md", heading)
        atomic_files.create(self._folder / discoveries.NAME, "")

    def write(self, state: State) -> None:
        """Brings every file up to date; files whose text is the same are left alone."""
        for name, text in self._texts(state):
            digest = _digest(text.encode())
            if self._written.get(name) == digest:
                continue
            if name != TABLE:
                atomic_files.write(self._folder / name, text)
            elif not self._write_table(state, text, digest):
                continue
            self._written[name] = digest
        self._write_wave_files(state)
        self._extend_messages(state)
        self._extend_wisdom(state)
        self._shown = state

    def withdraw(self, before: State, after: State) -> None:
        """Takes back what the files say of work that a rollback undid; here alone something is removed from wisdom."""
        undone = self._team.documents(before).keys() - self._team.documents(after).keys()
        gone = [*undone, "results.csv", "context.md"]
        for name in gone:
            (self._folder / name).unlink(missing_ok=True)
        for name in WISDOM:
            path = self._folder / "wisdom" / f"{name}.md"
            left = {_told(line) for line in _wisdom_lines(after, name)}
            dropped = {_told(line) for line in _wisdom_lines(before, name)} - left
            if dropped and path.exists():
                lines = path.read_text(encoding="utf-8").splitlines()
                atomic_files.write(path, "".join(f"{line}\n" for line in lines if _told(line) not in dropped))

    def edits(self, state: State, *, strict: bool = True) -> Edited:
        """What a person changed in tasks.csv since iterdev last wrote it; each change is told once.

        A table that cannot be read raises; unless `strict`, it is left for a later look.
        """
        body = self._foreign_table(state)
        if body is None:
            return Edited()
        try:
            changes = self._changes(state, body)
        except UserError:
            if strict:
                raise
            return Edited()
        return self._take(state, body, changes)

    def edits_beside_agents(self, state: State, *, strict: bool) -> Edited | Refused:
        """The same while agents are at work: where they can write, an edit that claims something is refused as a whole.

        So is a table that cannot be read; unless `strict`, it may be half written and is left for a later look.
        """
        if not self._exposed:
            return self.edits(state, strict=False)
        body = self._foreign_table(state)
        if body is None:
            return Edited()
        try:
            changes = self._changes(state, body)
        except UserError as error:
            return self._refuse(state, body, error.message) if strict else Edited()
        if claims := [words for row, known in changes.rows if (words := claim(row, *known))]:
            return self._refuse(state, body, ", ".join(claims))
        return self._take(state, body, changes)

    def _take(self, state: State, body: bytes, changes: _Changes) -> Edited:
        if changes.missing:
            self._write_again(state, body)
        else:
            self._table = body
        return Edited(rows=tuple(row for row, _ in changes.rows), missing=changes.missing)

    def _refuse(self, state: State, body: bytes, why: str) -> Edited | Refused:
        """Puts the edit beside the table, and the table back in its place; the same edit is kept and told once."""
        path, digest = self._folder / TABLE, _digest(body)
        known = digest in self._refused and path.is_file()
        kept = path if known else atomic_files.put_aside(path, self._folder / REFUSED)
        self._refused.add(digest)
        self._write_again(state, body)
        return Edited() if known else Refused(why=why, kept=kept.name)

    def _write_again(self, state: State, body: bytes) -> None:
        """Writes the table over what it holds; not if somebody was faster, and wrote it once more."""
        before, self._table = self._table, body
        text = tasks_csv.table(state, self._team)
        digest = _digest(text.encode())
        if self._write_table(state, text, digest):
            self._written[TABLE] = digest
        else:
            self._table = before

    def _foreign_table(self, state: State) -> bytes | None:
        """What tasks.csv holds if a person wrote it and it was not read back yet."""
        body = atomic_files.held(self._folder / TABLE)
        if body is None or body == self._table:
            return None
        known = self._table is None and _digest(body) in self._journal.projected(state.session.id, TABLE)
        if not known and body != tasks_csv.table(state, self._team).encode():
            return body
        self._table = body
        return None

    def _changes(self, state: State, body: bytes) -> _Changes:
        """What differs from the table that the person had before them, and is not so already."""
        try:
            text = body.decode()
        except UnicodeDecodeError as error:
            raise UserError(f"{TABLE} is not UTF-8 text: {error}", hint=f"save {TABLE} as UTF-8") from error
        before = self._rows(self._table.decode() if self._table is not None else self._last_projection(state))
        expected = [state.tasks.plan[task] for task in before if task in state.tasks.plan]
        theirs = tasks_csv.parse(text, self._team, f"{state.session.folder}/{TABLE}", expected)
        now = self._rows(tasks_csv.table(state, self._team))
        ids = ((row, row.edit.task.id) for row in theirs)
        known = ((row, tuple(rows[task] for rows in (before, now) if task in rows)) for row, task in ids)
        own = {row.edit.task.id for row in theirs}
        return _Changes(
            [(row, same) for row, same in known if row not in same],
            tuple(task.id for task in expected if task.id not in own),
        )

    def _rows(self, table: str) -> dict[TaskId, TableRow]:
        return {row.edit.task.id: row for row in tasks_csv.parse(table, self._team)}

    def _last_projection(self, state: State) -> str:
        """The table that the engine before this one left. Of two that are possible, the older one changes less."""
        entries = self._journal.projected(state.session.id, TABLE).values()
        written = self._journal.read(state.session.id)[: min(entries)] if entries else []
        return tasks_csv.table(replay(written, self._team) or state, self._team)

    def _write_table(self, state: State, text: str, digest: str) -> bool:
        """Never writes over a person's edit that has not been read back yet."""
        if self._foreign_table(state) is not None:
            return False
        self._journal.intend(state.session.id, TABLE, digest, seq=state.seq)
        atomic_files.write(self._folder / TABLE, text, durable=True)
        self._journal.settle(state.session.id, TABLE, digest)
        self._table = text.encode()
        return True

    def _texts(self, state: State) -> Iterator[tuple[str, str]]:
        table = tasks_csv.table(state, self._team)
        yield TABLE, table
        yield from records(state, self._team).items()
        yield from self._team.documents(state, self._shown).items()
        if state.lifecycle.is_finished:
            yield "results.csv", table
            yield "context.md", report(state, self._team)

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
        """Adds the new messages; a file that is not the beginning of the bus is written again."""
        known, now = self._messages, state.messages.sent
        if known == now:
            return
        path = self._folder / MESSAGES
        if known and known == now[: len(known)] and path.exists():
            atomic_files.extend(path, "".join(f"{message_line(message)}\n" for message in now[len(known) :]))
        else:
            atomic_files.write(path, "".join(f"{message_line(message)}\n" for message in now))
        self._messages = now

    def _extend_wisdom(self, state: State) -> None:
        """Adds what is new; an entry that is there is left alone, whoever wrote it."""
        seen = (len(state.wisdom.notes), len(state.wisdom.rejected))
        if seen == self._wisdom:
            return
        for name in WISDOM:
            wanted = list(_wisdom_lines(state, name))
            path = self._folder / "wisdom" / f"{name}.md"
            known = path.read_text(encoding="utf-8", errors="replace").splitlines() if wanted and path.exists() else ()
            told = {_told(line) for line in known}
            new: dict[str, str] = {}
            for line in wanted:
                if _told(line) not in told:
                    new.setdefault(_told(line), line)
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


def _told(line: str) -> str:
    """A line without its evidence, which sessions of older versions spelt in another way."""
    return line.rpartition(" (")[0]


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
