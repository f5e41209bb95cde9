"""The result of deciding a session's journal again, as documents."""

import msgspec
from msgspec import Struct

from iterdev.core.session.replay_check import Difference, Replay
from iterdev.core.types import SessionId


class RecordView(Struct, frozen=True, kw_only=True):
    """An event or a command: its kind and its fields."""

    kind: str
    fields: dict[str, object]


class DifferenceView(Struct, frozen=True, kw_only=True):
    """The first entry that would not be written today."""

    seq: int
    at: float
    recorded: RecordView
    decided: tuple[RecordView, ...]


class ReplayView(Struct, frozen=True, kw_only=True):
    session: SessionId
    entries: int
    decisions: int
    difference: DifferenceView | None


def replay_view(session: SessionId, replay: Replay) -> ReplayView:
    return ReplayView(
        session=session,
        entries=replay.entries,
        decisions=replay.decisions,
        difference=_difference_view(replay.difference) if replay.difference else None,
    )


def _difference_view(difference: Difference) -> DifferenceView:
    return DifferenceView(
        seq=difference.seq,
        at=difference.at,
        recorded=_record_view(difference.recorded),
        decided=tuple(map(_record_view, difference.decided)),
    )


def _record_view(record: Struct) -> RecordView:
    return RecordView(kind=type(record).__name__, fields=msgspec.to_builtins(record))


def replay_document(view: ReplayView) -> dict[str, object]:
    """What `--json` prints of it."""
    document: dict[str, object] = msgspec.to_builtins(view)
    if difference := view.difference:
        document["difference"] = {
            "seq": difference.seq,
            "at": difference.at,
            "recorded": difference.recorded.fields,
            "decided": [{"command": command.kind, **command.fields} for command in difference.decided],
        }
    return document
