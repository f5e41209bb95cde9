"""The result of deciding a session's journal again, as text and as a document."""

import json

import msgspec
from msgspec import Struct

from iterdev.core.formatting import counted
from iterdev.core.results import shortened
from iterdev.core.rules.replay_check import Difference, Replay
from iterdev.core.types import SessionId

WIDTH = 400
"""Characters of an event that the text has; the document has all of them."""


def replay_text(session: SessionId, replay: Replay) -> str:
    if replay.difference:
        return f"{session}: entry {replay.difference.seq} was not decided\n{_lines(replay.difference)}"
    entries = counted(replay.entries, "entry", "entries")
    return f"{session}: {entries}, {replay.decisions} of them decided; deciding again makes no difference"


def replay_document(session: SessionId, replay: Replay) -> dict[str, object]:
    """What `--json` prints of it."""
    document: dict[str, object] = {"session": session, **msgspec.to_builtins(replay)}
    if difference := replay.difference:
        decided = [{"command": type(one).__name__, **msgspec.to_builtins(one)} for one in difference.decided]
        document["difference"] = msgspec.to_builtins(difference) | {"decided": decided}
    return document


def _lines(difference: Difference) -> str:
    now = [_short(command) for command in difference.decided] or ["nothing"]
    return "\n".join([f"  recorded then: {_short(difference.recorded)}", *(f"  decided now:   {text}" for text in now)])


def _short(value: Struct) -> str:
    return shortened(f"{type(value).__name__} {json.dumps(msgspec.to_builtins(value), ensure_ascii=False)}", WIDTH)
