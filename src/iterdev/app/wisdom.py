"""The wisdom of a repository: what its sessions learned, passed on to new ones, and rejected by people."""

from collections.abc import Iterable

from msgspec import Struct

from iterdev.app.edits import edit_session
from iterdev.core.collaboration import wisdom
from iterdev.core.collaboration.wisdom import Note
from iterdev.core.errors import UserError
from iterdev.core.session.state import State
from iterdev.engine.repository import Repository


class Learned(Struct, frozen=True, kw_only=True):
    id: str
    file: str
    text: str
    evidence: tuple[Note, ...]
    rejected: bool
    reason: str


def inherited(repository: Repository, requirement: str) -> wisdom.WisdomInherited | None:
    """The wisdom that a new session inherits from earlier ones."""
    states = map(repository.state, repository.sessions()[-wisdom.LOOKED_AT :])
    earlier = [
        wisdom.Earlier(state.session.requirement, finished=state.lifecycle.is_finished, wisdom=state.wisdom)
        for state in states
    ]
    return wisdom.handed_down(earlier, requirement)


def learned(repository: Repository) -> list[Learned]:
    """Everything that the sessions of the repository learned, oldest first."""
    return _learned(list(map(repository.state, repository.sessions())))


def _learned(states: Iterable[State]) -> list[Learned]:
    evidence: dict[str, list[Note]] = {}
    rejected: dict[str, str] = {}
    for state in states:
        rejected.update(state.wisdom.rejected)
        for note in state.wisdom.notes:
            evidence.setdefault(note.id, []).append(note)
    return [
        Learned(
            id=name,
            file=notes[0].file,
            text=notes[0].text,
            evidence=tuple(notes),
            rejected=name in rejected,
            reason=rejected.get(name, ""),
        )
        for name, notes in evidence.items()
    ]


def reject(repository: Repository, name: str, reason: str) -> Learned:
    """Takes an entry out of use, in every session that has it and in those that are not finished."""
    states = list(map(repository.state, repository.sessions()))
    found = [entry for entry in _learned(states) if entry.id == name]
    if not found:
        raise UserError(f'There is no entry "{name}"', hint="iterdev wisdom list")
    for state in states:
        has = any(note.id == name for note in (*state.wisdom.notes, *state.wisdom.inherited))
        if has or not state.lifecycle.is_finished:
            with edit_session(repository, state.session.id) as log:
                log.record(wisdom.WisdomRejected(name, repository.redact(reason)))
    return found[0]
