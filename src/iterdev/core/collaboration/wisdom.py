"""What the team has learned: notes with their evidence, those of earlier sessions, and those that were rejected.

A note is its text: the same words learned twice are one note with two pieces of evidence, and rejecting them
rejects them wherever they were learned.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.append_only import AppendOnly
from iterdev.core.ids import CHINESE
from iterdev.core.results import shortened

CONVENTIONS = "conventions"
FILES = ("learnings", "decisions", CONVENTIONS, "issues")
INHERITED = 20
"""Entries of earlier sessions that a new one is given."""
SHOWN = 300
"""Characters of such an entry, and of one in a file."""
WRITTEN_LINES = 100
"""Lines of one wisdom file that are taken over, so that a long text does not fill every prompt."""
LOOKED_AT = 20
"""How many earlier sessions are read, the newest ones."""


_BULLET = re.compile(r"^[-*+]\s+")
_OWN = re.compile(r"\(W-[0-9a-f]{8}(?:, [^()]*)?\)$|^- W-[0-9a-f]{8} is rejected \(")


class Note(Struct, frozen=True, kw_only=True):
    id: str
    file: str
    text: str
    session: str
    task: str
    commit: str
    """The work that it was learned from."""
    at: float

    @property
    def evidence(self) -> str:
        return ", ".join(part for part in (self.session, self.task, self.commit[:7]) if part)


def note(file: str, text: str, *, session: str, task: str, commit: str, at: float) -> Note:
    words = " ".join(text.split())
    digest = hashlib.sha256(f"{file}\0{words}".encode()).hexdigest()
    return Note(id=f"W-{digest[:8]}", file=file, text=words, session=session, task=task, commit=commit, at=at)


class Written(Struct, frozen=True, kw_only=True):
    """An entry in a file of the session folder that came from no result."""

    file: str
    text: str
    worker: str = ""
    """Who put it on the discovery board; empty for a line that a person wrote into a wisdom file."""


def written_lines(file: str, content: str) -> list[Written]:
    """The lines of a wisdom file that iterdev did not write: it ends its own with the id and the evidence."""
    lines = (line.strip() for line in content.splitlines())
    texts = [_BULLET.sub("", line) for line in lines if line and not line.startswith("#") and not _OWN.search(line)]
    return [Written(file=file, text=text) for text in texts[:WRITTEN_LINES] if text]


def convention(data: Mapping[str, object], worker: str) -> Written | None:
    """A convention of the discovery board as an entry; none if it says nothing."""
    name, description, example = (str(data.get(key) or "").strip() for key in ("name", "description", "example"))
    text = ": ".join(part for part in (name, description) if part)
    text += f" (such as {example})" if text and example else ""
    return Written(file=CONVENTIONS, text=text, worker=worker) if text else None


class WisdomNoted(Struct, frozen=True, tag=True):
    notes: tuple[Note, ...]


class WisdomInherited(Struct, frozen=True, tag=True):
    notes: tuple[Note, ...]
    rejected: Mapping[str, str]


class WisdomRejected(Struct, frozen=True, tag=True):
    id: str
    reason: str = ""


WisdomEvent = WisdomNoted | WisdomInherited | WisdomRejected


class Wisdom(Struct, frozen=True, kw_only=True):
    notes: AppendOnly[Note] = AppendOnly[Note]()
    inherited: tuple[Note, ...] = ()
    rejected: Mapping[str, str] = {}
    """The ids that are not to be used, and why."""


def evolve(part: Wisdom, event: WisdomEvent, _: float = 0) -> Wisdom:
    match event:
        case WisdomNoted(notes):
            return replace(part, notes=part.notes.extended(notes))
        case WisdomInherited(notes, rejected):
            return replace(part, inherited=notes, rejected={**part.rejected, **rejected})
        case WisdomRejected(name, reason):
            known = part.rejected.get(name, "")
            return replace(part, rejected={**part.rejected, name: reason or known})
        case _:
            assert_never(event)


def without_tasks(part: Wisdom, tasks: Collection[str]) -> Wisdom:
    """Without the notes of tasks that a rollback undid."""
    return replace(part, notes=AppendOnly(note for note in part.notes if note.task not in tasks))


def usable(notes: Iterable[Note], rejected: Mapping[str, str]) -> list[Note]:
    """Each entry once, without those that a person rejected."""
    return list({note.id: note for note in notes if note.id not in rejected}.values())


class Earlier(Struct, frozen=True):
    """What a session can pass on to later sessions."""

    requirement: str
    finished: bool
    """Only finished sessions pass on what they learned; all of them pass on what was rejected."""
    wisdom: Wisdom


def handed_down(earlier: Sequence[Earlier], requirement: str) -> WisdomInherited | None:
    """What a new session inherits from earlier ones, of which the last is the newest.

    Entries that have a word in common with the requirement come first, newer ones before older ones.
    """
    rejected = {name: reason for one in earlier for name, reason in one.wisdom.rejected.items()}
    wanted = _words(requirement)
    found: dict[str, tuple[bool, Note]] = {}
    for one in reversed(earlier):
        related = bool(wanted & _words(one.requirement))
        for entry in reversed(one.wisdom.notes if one.finished else ()):
            if entry.id not in rejected:
                found.setdefault(entry.id, (related or bool(wanted & _words(entry.text)), entry))
    ranked = sorted(found.values(), key=lambda pair: not pair[0])
    notes = tuple(replace(entry, text=shortened(entry.text, SHOWN)) for _, entry in ranked[:INHERITED])
    return WisdomInherited(notes, rejected) if notes or rejected else None


def _words(text: str) -> frozenset[str]:
    """Words long enough to mean something; of Chinese, which has no spaces, every two characters in a row."""
    letters = re.findall(r"[^\W\d_]{4,}", re.sub(f"[{CHINESE}]", " ", text.lower()))
    return frozenset((*letters, *re.findall(f"(?=([{CHINESE}]{{2}}))", text)))
