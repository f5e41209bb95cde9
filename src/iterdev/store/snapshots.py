"""Snapshots: the state of a long session after one of its entries, so that opening it does not fold all of them.

A snapshot is a projection of the journal, and nothing is lost with it. It is used only if it is what was written, by
this very program, and if the journal still has the entry that it belongs to. Otherwise everything is folded.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from iterdev import __version__
from iterdev.core.append_only import AppendOnly
from iterdev.core.errors import HostError
from iterdev.core.session.events import Entry, SessionStarted
from iterdev.core.session.state import State
from iterdev.core.session.task_table import with_queues
from iterdev.core.types import SessionId, TaskFields
from iterdev.store.journal import EventCodec, Journal, Snapshot
from iterdev.teams.contract import Team

LONG = 1_000
"""So few entries are folded quickly without a snapshot."""
SHARE = 10
"""A snapshot is as large as the session, so it is replaced only when one in so many of all entries came after it."""
FOLDING = ("core", "teams", "tracker")
"""The packages whose code decides what a state is, and how it is folded."""
UNENCODABLE = (TypeError, ValueError, OverflowError, RecursionError)
UNREADABLE = (*UNENCODABLE, LookupError, AttributeError)


class _Last(Struct, frozen=True, array_like=True):
    """`State.last`; its event is encoded as in the journal."""

    seq: int
    at: float
    event: bytes


class _Deferred(Struct, frozen=True, array_like=True):
    """A sequence of any length, which is decoded when it is used."""

    count: int
    items: Raw


def load(journal: Journal, session: SessionId, by: bytes | None = None) -> State | None:
    """The state of a session after an earlier entry; None if there is no snapshot that this program can rely on."""
    with suppress(*UNREADABLE):
        found = journal.snapshot(session)
        if found and found.mark == _mark(journal, session, found.seq, found.body, by or program()):
            (first,) = journal.read(session, until=1)
            team = first.event.session.team if isinstance(first.event, SessionStarted) else ""
            return decode(found.body, journal.codec, journal.teams[team])
    return None


def save(journal: Journal, state: State, *, known: int, long: int = LONG) -> int:
    """Saves the state if many entries came since the one that is `known`; returns the entry of the newest snapshot.

    If the journal cannot be written, or a value cannot be encoded, there is no snapshot, and no error.
    """
    if state.seq - known < max(long, state.seq // SHARE):
        return known
    session = state.session.id
    with suppress(HostError, *UNENCODABLE):
        body = encode(state, journal.codec)
        journal.save_snapshot(session, Snapshot(state.seq, _mark(journal, session, state.seq, body, program()), body))
        return state.seq
    return known


def _mark(journal: Journal, session: SessionId, seq: int, body: bytes, by: bytes) -> bytes:
    """A digest of all that a snapshot depends on; no two entries of a journal have the same time and text."""
    digest = hashlib.sha256()
    for part in (by, journal.encoded(session, 1), journal.encoded(session, seq), body):
        digest.update(b"%d %d " % (seq, len(part)))
        digest.update(part)
    return digest.digest()


@cache
def program() -> bytes:
    """Identifies the code that makes states, even while it is being developed and its version stays the same."""
    top = Path(__file__).parent.parent
    parts = [__version__, sys.version, msgspec.__version__, *_stamps(top / "store" / "snapshots.py")]
    for name in FOLDING:
        for folder, _, files in sorted(os.walk(top / name)):
            parts += (stamp for file in sorted(files) for stamp in _stamps(Path(folder, file)))
    return "\0".join(parts).encode(errors="surrogateescape")


def _stamps(file: Path) -> Iterator[str]:
    if file.suffix == ".py":
        status = file.stat()
        yield f"{file} {status.st_size} {status.st_mtime_ns}"


def encode(state: State, codec: EventCodec) -> bytes:
    last = state.last
    given: Mapping[str, object] = {
        **msgspec.structs.asdict(state),
        # The queues follow from the ready tasks, and their keys are values of the team.
        "tasks": replace(state.tasks, queues={}),
        "last": _Last(last.seq, last.at, codec.encode(last.event)),
    }
    return _encode({name: Raw(_encode(value)) for name, value in given.items()})


def decode(body: bytes, codec: EventCodec, team: Team) -> State:
    parts = msgspec.msgpack.decode(body, type=dict[str, Raw])
    state = State(**{name: decode(parts[name]) for name, decode in _decoders(codec, team).items()})
    return replace(state, tasks=with_queues(state.tasks))


def _decoders(codec: EventCodec, team: Team) -> dict[str, Callable[[Raw], Any]]:
    hook = _hook(team)

    def decoder(kind: object) -> Callable[[Raw], Any]:
        return msgspec.msgpack.Decoder(kind, dec_hook=hook).decode

    def last(raw: Raw) -> Entry:
        found: _Last = decoder(_Last)(raw)
        return Entry(found.seq, found.at, codec.decode(found.event))

    hints = get_type_hints(State)
    known = {"team": decoder(type(team.initial())), "last": last}
    return {name: known.get(name) or decoder(hints[name]) for name in State.__struct_fields__}


def _encode(value: object) -> bytes:
    return msgspec.msgpack.encode(value, enc_hook=_encodable)


def _encodable(value: object) -> object:
    if isinstance(value, AppendOnly):
        return _encode(_Deferred(len(value), Raw(_encode(value.as_added()))))
    raise TypeError(type(value))


def _hook(team: Team) -> Callable[[type, Any], object]:
    def decode(kind: type, value: Any) -> object:  # noqa: ANN401 - the hook's own signature
        if kind is TaskFields:
            return msgspec.convert(value, team.task_fields)
        origin = get_origin(kind) or kind
        # Everything else is an `object`, of which JSON says all there is.
        return _deferred(origin, get_args(kind)[0], value) if issubclass(origin, AppendOnly) else value

    return decode


def _deferred(kind: type[AppendOnly[Any]], item: object, value: bytes) -> AppendOnly[Any]:
    stored = msgspec.msgpack.decode(value, type=_Deferred)
    return kind.deferred(stored.count, lambda: msgspec.msgpack.decode(stored.items, type=list[item]))  # type: ignore[valid-type]
