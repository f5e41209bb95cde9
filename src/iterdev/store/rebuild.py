"""Makes a session's journal again from its folder, when the journal is missing or damaged."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from iterdev.core import names
from iterdev.core.analysis import analyse
from iterdev.core.errors import UserError
from iterdev.core.events import Event, Policy, Session, SessionStarted, TableEdited, TasksAdded, Warned
from iterdev.core.words import Engine, Pipeline, SessionId, Team
from iterdev.store import tables
from iterdev.store.projections import TABLE

ROOTS = ((Engine.wave, ".workflow/.csv-wave"), (Engine.beat, ".workflow/.team"))


def folders(top: Path) -> list[tuple[Engine, Path]]:
    """Every session folder of a repository that has a table, oldest first."""
    found = [
        (engine, path.parent) for engine, root in ROOTS for path in (top / root).glob(f"*/{TABLE}") if path.is_file()
    ]
    return sorted(found, key=lambda pair: (pair[1] / TABLE).stat().st_mtime)


def session_from(folder: Path, engine: Engine, *, base: str, branch: str) -> tuple[SessionId, float, list[Event]]:
    """The events that say what the folder says; what it does not say is filled in and warned about."""
    kept = _read_json(folder / "session.json")
    text = _text(folder / TABLE)
    rows = tables.parse(text, f"{folder.name}/{TABLE}")
    requirement = str(kept.get("requirement") or _requirement_from(folder.name))
    session = Session(
        id=SessionId(folder.name),
        team=Team.iterdev,
        engine=engine,
        requirement=requirement,
        folder=names.folder(engine, SessionId(folder.name)),
        base=str(kept.get("base") or base),
        branch=str(kept.get("user_branch") or branch),
        analysis=analyse(requirement),
        pipeline=Pipeline(str(kept.get("pipeline") or rows[0].task.pipeline)) if rows else None,
        by_hand=bool(kept.get("by_hand")),
    )
    policy = Policy(auto=bool(kept.get("auto")), concurrency=_positive(kept.get("concurrency"), 3))
    events: list[Event] = [SessionStarted(session, policy)]
    if rows:
        events += [TasksAdded(tuple(row.task for row in rows)), TableEdited(tuple(rows))]
    events.append(Warned("the journal was missing or damaged; this session was rebuilt from its folder"))
    return session.id, _created(kept), events


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f'Cannot read "{path}": {error}', hint="restore the file, or remove the folder") from error


def _read_json(path: Path) -> Mapping[str, object]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def _requirement_from(name: str) -> str:
    """The words of the id, without prefix and date."""
    return re.sub(r"^(ids|IDS|issue|TISL)-|-\d{4}-?\d{2}-?\d{2}(-\d+)?$", "", name).replace("-", " ") or name


def _positive(value: object, default: int) -> int:
    return value if isinstance(value, int) and value > 0 else default


def _created(kept: Mapping[str, object]) -> float:
    try:
        return datetime.fromisoformat(str(kept.get("created_at"))).timestamp()
    except ValueError:
        return 0.0
