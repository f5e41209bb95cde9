"""Makes a session's journal again from its folder, when the journal is missing or damaged.

Unreadable parts are skipped.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from iterdev.core import ids
from iterdev.core.collaboration.messages import MessagesCleared, MessageSent
from iterdev.core.errors import UserError
from iterdev.core.policy import Policy
from iterdev.core.request import Request
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session.events import (
    Archived,
    EngineStarted,
    Event,
    Finished,
    Session,
    SessionStarted,
    TableEdited,
    TasksAdded,
    Warned,
)
from iterdev.core.settings import Settings
from iterdev.core.types import Engine, Phase, SessionId
from iterdev.store.session_folder import collaboration_records, tasks_csv
from iterdev.store.session_folder.json_records import MessageLine
from iterdev.store.session_folder.projector import MESSAGES, TABLE
from iterdev.teams.contract import Team

ROOTS = ((Engine.wave, ".workflow/.csv-wave"), (Engine.beat, ".workflow/.team"))
META = ".msg/meta.json"


def folders(top: Path) -> list[tuple[Engine, Path]]:
    """Every session folder of a repository that has a table, oldest first."""
    found = [
        (engine, path.parent) for engine, root in ROOTS for path in (top / root).glob(f"*/{TABLE}") if path.is_file()
    ]
    return sorted(found, key=lambda pair: (pair[1] / TABLE).stat().st_mtime)


def team_name(folder: Path) -> str:
    """The team whose session the folder is, as far as it says."""
    return _word(_read_json(folder / "session.json"), "team")


def session_events(
    folder: Path, engine: Engine, team: Team, *, base: str, branch: str
) -> tuple[SessionId, float, list[Event]]:
    """The events that say what the folder says; what it does not say gets a default and a warning."""
    kept = {**_of_older_version(folder), **_read_json(folder / "session.json")}
    meta = _read_json(folder / META) or _read_json(folder / "shared-memory.json")
    rows = tasks_csv.parse(_text(folder / TABLE), team, f"{folder.name}/{TABLE}")
    requirement = _word(kept, "requirement") or _word(meta, "task_description") or _requirement_from(folder.name)
    session = Session(
        id=SessionId(folder.name),
        team=team.name,
        engine=engine,
        requirement=requirement,
        folder=ids.folder(engine, SessionId(folder.name)),
        base=_word(kept, "base") or base,
        branch=_word(kept, "user_branch") or branch,
        agents=_agents(kept, team),
        team_name=_word(kept, "team_name") or team.name,
        by_hand=bool(kept.get("by_hand")),
    )
    request = Request(requirement=requirement, pipeline=_pipeline(kept, rows, team), engine=engine)
    events: list[Event] = [SessionStarted(session, _policy(kept)), *team.started(request, _settings(kept), {})]
    if rows:
        documents = {META: meta, **dict(_documents(folder))}
        edits = tuple(row.edit for row in rows)
        events += [TasksAdded(tuple(edit.task for edit in edits)), TableEdited(edits)]
        events += [*team.restored(documents, rows)]
    events += collaboration_records.events_from(meta)
    said = tuple(_messages(folder, session.team_name))
    events += _ending({"status": _status(meta, said), **kept})
    # The announcements of the events so far are on the restored bus already, in their own words.
    events += (MessagesCleared(), *said) if said else ()
    events.append(Warned("the journal was missing or damaged; this session was rebuilt from its folder"))
    return session.id, _created(kept), events


def _documents(folder: Path) -> Iterator[tuple[str, object]]:
    for path in folder.glob("*/*.json"):
        yield str(path.relative_to(folder)), _read_json(path)


def _pipeline(kept: Mapping[str, object], rows: Sequence[TableRow], team: Team) -> str | None:
    named = _word(kept, "pipeline")
    if named in team.pipelines:
        return named
    return team.plan_cells(rows[0].edit.task).get("pipeline") if rows else None


def _agents(kept: Mapping[str, object], team: Team) -> dict[str, str]:
    try:
        named = msgspec.convert(kept.get("agents", {}), dict[str, str])
    except msgspec.ValidationError:
        return {}
    return {role: agent for role, agent in named.items() if role in team.workers}


def _policy(kept: Mapping[str, object]) -> Policy:
    """The policy as it was; the default if a value makes no sense."""
    try:
        policy = msgspec.convert(kept.get("policy", {}), Policy)
    except msgspec.ValidationError:
        return Policy()
    return policy if policy.concurrency > 0 else Policy()


def _settings(kept: Mapping[str, object]) -> Settings:
    rounds = kept.get("max_gc_rounds")
    default = Settings()
    if not isinstance(rounds, int) or rounds < 0:
        return default
    return msgspec.structs.replace(default, limits=msgspec.structs.replace(default.limits, rounds=rounds))


def _ending(kept: Mapping[str, object]) -> Iterator[Event]:
    """What had landed, and whether the session was over."""
    if tip := _word(kept, "tip"):
        yield EngineStarted(0, tip)
    if kept.get("status") == Phase.completed:
        yield Finished()
    if _word(kept, "archived_at"):
        yield Archived()


def _status(meta: Mapping[str, object], said: Sequence[MessageSent]) -> object:
    """Where the session stood, for a folder whose session.json does not say."""
    ended = bool(said) and said[-1].kind == "shutdown"
    return meta.get("status", Phase.completed if ended else Phase.active)


def _messages(folder: Path, team: str) -> Iterator[MessageSent]:
    """What was on the bus, which older versions kept for each team."""
    own, older = folder / MESSAGES, folder.parents[1] / ".team-msg" / Path(team).name / "messages.jsonl"
    try:
        lines = (own if own.exists() else older).read_bytes().split(b"\n")
    except OSError:
        return
    for line in lines:
        try:
            yield msgspec.json.decode(line, type=MessageLine).as_sent()
        except (ValueError, OverflowError, RecursionError):
            continue


def _of_older_version(folder: Path) -> Mapping[str, object]:
    """What team-session.json says, which older versions wrote."""
    old = _read_json(folder / "team-session.json")
    return {**old, "requirement": old.get("task")} if old else {}


def _read_json(path: Path) -> Mapping[str, object]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


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
