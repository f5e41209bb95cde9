"""replay: the decisions of a session, made again."""

import json
from pathlib import Path

import click
import msgspec

from iterdev.core.session.replay_check import Difference, Replay, compare
from iterdev.engine.repository import Repository

WIDTH = 400
"""Characters of an event that are printed; `--json` has all of them."""


def replay(*, session: str, as_json: bool) -> int:
    """0 if today the same would be decided, 1 if not."""
    repository = Repository(Path.cwd())
    found = repository.find(session)
    replayed = compare(repository.journal.read(found))
    if as_json:
        click.echo(json.dumps({"session": found, **_document(replayed)}, ensure_ascii=False))
    elif difference := replayed.difference:
        click.echo("\n".join([f"{found}: entry {difference.seq} was not decided", *_lines(difference)]))
    else:
        counted = f"{replayed.entries} entries, {replayed.decisions} of them decided"
        click.echo(f"{found}: {counted}; deciding again makes no difference")
    return 1 if replayed.difference else 0


def _document(replayed: Replay) -> dict[str, object]:
    document: dict[str, object] = msgspec.to_builtins(replayed)
    if difference := replayed.difference:
        decided = [{"command": type(one).__name__, **msgspec.to_builtins(one)} for one in difference.decided]
        document["difference"] = msgspec.to_builtins(difference) | {"decided": decided}
    return document


def _lines(difference: Difference) -> list[str]:
    now = [_short(command) for command in difference.decided] or ["nothing"]
    return [f"  recorded then: {_short(difference.recorded)}", *(f"  decided now:   {text}" for text in now)]


def _short(value: msgspec.Struct) -> str:
    text = json.dumps(msgspec.to_builtins(value), ensure_ascii=False)
    named = f"{type(value).__name__} {text}"
    return named if len(named) <= WIDTH else f"{named[:WIDTH]}…"
