"""Makes a session's journal again from its folder, when the journal is missing or damaged."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from iterdev.core import events as e
from iterdev.core import names
from iterdev.core.analysis import analyse
from iterdev.core.completion import Archived
from iterdev.core.errors import UserError
from iterdev.core.words import Engine, Phase, Pipeline, Role, SessionId, Team
from iterdev.store import remains, shared, tables
from iterdev.store.projections import TABLE
from iterdev.store.remains import read_json

ROOTS = ((Engine.wave, ".workflow/.csv-wave"), (Engine.beat, ".workflow/.team"))


def folders(top: Path) -> list[tuple[Engine, Path]]:
    """Every session folder of a repository that has a table, oldest first."""
    found = [
        (engine, path.parent) for engine, root in ROOTS for path in (top / root).glob(f"*/{TABLE}") if path.is_file()
    ]
    return sorted(found, key=lambda pair: (pair[1] / TABLE).stat().st_mtime)


def session_from(folder: Path, engine: Engine, *, base: str, branch: str) -> tuple[SessionId, float, list[e.Event]]:
    """The events that say what the folder says; what it does not say is filled in and warned about."""
    kept = {**_of_older_version(folder), **read_json(folder / "session.json")}
    meta = read_json(folder / ".msg" / "meta.json") or read_json(folder / "shared-memory.json")
    text = _text(folder / TABLE)
    rows = tables.parse(text, f"{folder.name}/{TABLE}")
    requirement = _word(kept, "requirement") or _word(meta, "task_description") or _requirement_from(folder.name)
    session = e.Session(
        id=SessionId(folder.name),
        team=Team.iterdev,
        engine=engine,
        requirement=requirement,
        folder=names.folder(engine, SessionId(folder.name)),
        base=_word(kept, "base") or base,
        branch=_word(kept, "user_branch") or branch,
        analysis=analyse(requirement),
        pipeline=_pipeline(kept, rows) if rows else None,
        agents=_agents(kept),
        team_name=_word(kept, "team_name") or Team.iterdev,
        by_hand=bool(kept.get("by_hand")),
    )
    events: list[e.Event] = [e.SessionStarted(session, _policy(kept))]
    if rows:
        events += [e.TasksAdded(tuple(row.task for row in rows)), *remains.designs(folder, rows)]
        events += [e.TableEdited(tuple(rows)), *_sprints(meta, rows), *_rounds(rows)]
    events += shared.events_from(meta)
    said = tuple(remains.messages(folder, session.team_name))
    events += _ending({"status": _status(meta, said), **kept})
    # What follows from the events so far was said before, in the words of the bus itself.
    events += (e.MessagesCleared(), *said) if said else ()
    events.append(e.Warned("the journal was missing or damaged; this session was rebuilt from its folder"))
    return session.id, _created(kept), events


def _pipeline(kept: Mapping[str, object], rows: Sequence[e.RowEdit]) -> Pipeline:
    named = _word(kept, "pipeline")
    return Pipeline(named) if named in set(Pipeline) else rows[0].task.pipeline


def _agents(kept: Mapping[str, object]) -> dict[Role, str]:
    try:
        return msgspec.convert(kept.get("agents", {}), dict[Role, str])
    except msgspec.ValidationError:
        return {}


def _policy(kept: Mapping[str, object]) -> e.Policy:
    """The rules as they were; if one of them makes no sense, the usual ones."""
    try:
        policy = msgspec.convert(kept.get("policy", {}), e.Policy)
    except msgspec.ValidationError:
        return e.Policy()
    return policy if policy.concurrency > 0 and policy.rounds >= 0 else e.Policy()


def _rounds(rows: Sequence[e.RowEdit]) -> Iterator[e.RoundStarted]:
    """How many fix rounds the table shows, so that the limit still holds."""
    used: dict[int, int] = {}
    for row in rows:
        used[row.task.sprint] = max(row.task.round, used.get(row.task.sprint, 0))
    for sprint, number in sorted(used.items()):
        if number:
            yield e.RoundStarted(sprint=sprint, number=number, raised_by=(), why="as the table says")


def _sprints(meta: Mapping[str, object], rows: Sequence[e.RowEdit]) -> Iterator[e.SprintEvent]:
    """The sprint that the table has come to, and how those before it went."""
    reached = max((row.task.sprint for row in rows), default=1)
    yield from remains.sprints(meta, before=reached)
    if reached > 1:
        yield e.SprintStarted(reached, "as the table says")


def _ending(kept: Mapping[str, object]) -> Iterator[e.Event]:
    """What had landed, and whether the session was over."""
    if tip := _word(kept, "tip"):
        yield e.EngineStarted(0, tip)
    if kept.get("status") == Phase.completed:
        yield e.Finished()
    if _word(kept, "archived_at"):
        yield Archived()


def _status(meta: Mapping[str, object], said: Sequence[e.MessageSent]) -> object:
    """Where the session stood, for a folder whose session.json does not say."""
    ended = bool(said) and said[-1].kind == "shutdown"
    return meta.get("status", Phase.completed if ended else Phase.active)


def _of_older_version(folder: Path) -> Mapping[str, object]:
    """What team-session.json says, which older versions wrote."""
    old = read_json(folder / "team-session.json")
    return {**old, "requirement": old.get("task")} if old else {}


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f'Cannot read "{path}": {error}', hint="restore the file, or remove the folder") from error


def _word(kept: Mapping[str, object], name: str) -> str:
    value = kept.get(name)
    return value if isinstance(value, str) else ""


def _requirement_from(name: str) -> str:
    """The words of the id, without prefix and date."""
    return re.sub(r"^(ids|IDS|issue|TISL)-|-\d{4}-?\d{2}-?\d{2}(-\d+)?$", "", name).replace("-", " ") or name


def _created(kept: Mapping[str, object]) -> float:
    try:
        return datetime.fromisoformat(str(kept.get("created_at"))).timestamp()
    except (ValueError, OverflowError):
        return 0.0
