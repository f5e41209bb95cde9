"""Makes a session's journal again from its folder, when the journal is missing or damaged."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct, field

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.ids import number_of
from iterdev.core.results import Design
from iterdev.core.session import events as session_events
from iterdev.core.session.archive import Archived
from iterdev.core.types import Engine, Phase, Pipeline, Role, SessionId, Team
from iterdev.store.session_folder import collaboration_records, tasks_csv
from iterdev.store.session_folder.projector import MESSAGES, TABLE
from iterdev.teams.development.requirement_analysis import analyse

ROOTS = ((Engine.wave, ".workflow/.csv-wave"), (Engine.beat, ".workflow/.team"))


def folders(top: Path) -> list[tuple[Engine, Path]]:
    """Every session folder of a repository that has a table, oldest first."""
    found = [
        (engine, path.parent) for engine, root in ROOTS for path in (top / root).glob(f"*/{TABLE}") if path.is_file()
    ]
    return sorted(found, key=lambda pair: (pair[1] / TABLE).stat().st_mtime)


def session_from(
    folder: Path, engine: Engine, *, base: str, branch: str
) -> tuple[SessionId, float, list[session_events.Event]]:
    """The events that say what the folder says; what it does not say is filled in and warned about."""
    kept = {**_of_older_version(folder), **read_json(folder / "session.json")}
    meta = read_json(folder / ".msg" / "meta.json") or read_json(folder / "shared-memory.json")
    text = _text(folder / TABLE)
    rows = tasks_csv.parse(text, f"{folder.name}/{TABLE}")
    requirement = _word(kept, "requirement") or _word(meta, "task_description") or _requirement_from(folder.name)
    session = session_events.Session(
        id=SessionId(folder.name),
        team=Team.iterdev,
        engine=engine,
        requirement=requirement,
        folder=ids.folder(engine, SessionId(folder.name)),
        base=_word(kept, "base") or base,
        branch=_word(kept, "user_branch") or branch,
        analysis=analyse(requirement),
        pipeline=_pipeline(kept, rows) if rows else None,
        agents=_agents(kept),
        team_name=_word(kept, "team_name") or Team.iterdev,
        by_hand=bool(kept.get("by_hand")),
    )
    events: list[session_events.Event] = [session_events.SessionStarted(session, _policy(kept))]
    if rows:
        events += [session_events.TasksAdded(tuple(row.task for row in rows)), *designs(folder, rows)]
        events += [session_events.TableEdited(tuple(rows)), *_sprints(meta, rows), *_rounds(rows)]
    events += collaboration_records.events_from(meta)
    said = tuple(messages(folder, session.team_name))
    events += _ending({"status": _status(meta, said), **kept})
    # What follows from the events so far was said before, in the words of the bus itself.
    events += (session_events.MessagesCleared(), *said) if said else ()
    events.append(session_events.Warned("the journal was missing or damaged; this session was rebuilt from its folder"))
    return session.id, _created(kept), events


def _pipeline(kept: Mapping[str, object], rows: Sequence[session_events.RowEdit]) -> Pipeline:
    named = _word(kept, "pipeline")
    return Pipeline(named) if named in set(Pipeline) else rows[0].task.pipeline


def _agents(kept: Mapping[str, object]) -> dict[Role, str]:
    try:
        return msgspec.convert(kept.get("agents", {}), dict[Role, str])
    except msgspec.ValidationError:
        return {}


def _policy(kept: Mapping[str, object]) -> session_events.Policy:
    """The rules as they were; if one of them makes no sense, the usual ones."""
    try:
        policy = msgspec.convert(kept.get("policy", {}), session_events.Policy)
    except msgspec.ValidationError:
        return session_events.Policy()
    return policy if policy.concurrency > 0 and policy.rounds >= 0 else session_events.Policy()


def _rounds(rows: Sequence[session_events.RowEdit]) -> Iterator[session_events.RoundStarted]:
    """How many fix rounds the table shows, so that the limit still holds."""
    used: dict[int, int] = {}
    for row in rows:
        used[row.task.sprint] = max(row.task.round, used.get(row.task.sprint, 0))
    for sprint, number in sorted(used.items()):
        if number:
            yield session_events.RoundStarted(sprint=sprint, number=number, raised_by=(), why="as the table says")


def _sprints(
    meta: Mapping[str, object], rows: Sequence[session_events.RowEdit]
) -> Iterator[session_events.SprintEvent]:
    """The sprint that the table has come to, and how those before it went."""
    reached = max((row.task.sprint for row in rows), default=1)
    yield from sprints(meta, before=reached)
    if reached > 1:
        yield session_events.SprintStarted(reached, "as the table says")


def _ending(kept: Mapping[str, object]) -> Iterator[session_events.Event]:
    """What had landed, and whether the session was over."""
    if tip := _word(kept, "tip"):
        yield session_events.EngineStarted(0, tip)
    if kept.get("status") == Phase.completed:
        yield session_events.Finished()
    if _word(kept, "archived_at"):
        yield Archived()


def _status(meta: Mapping[str, object], said: Sequence[session_events.MessageSent]) -> object:
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


class Line(Struct, frozen=True, kw_only=True):
    """One message as its file has it."""

    id: str
    ts: datetime
    sender: str = field(name="from")
    to: str
    type: str
    summary: str
    data: dict[str, object] = {}

    def as_sent(self) -> session_events.MessageSent:
        return session_events.MessageSent(
            sender=self.sender,
            to=self.to,
            kind=self.type,
            summary=self.summary,
            data=self.data,
            sent_at=self.ts.timestamp(),
            number=int(self.id.removeprefix("MSG-")),
        )


class Sprint(Struct, frozen=True, kw_only=True):
    """One entry of the sprint history."""

    sprint_id: str
    pipeline: Pipeline
    velocity: int
    expected_velocity: int
    mean_review_score: float | None
    gc_rounds: int
    what_worked: tuple[str, ...] = ()
    what_failed: tuple[str, ...] = ()
    patterns_learned: tuple[str, ...] = ()
    tech_debt: str = ""


def read_json(path: Path) -> Mapping[str, object]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def designs(folder: Path, rows: Sequence[session_events.RowEdit]) -> Iterator[session_events.DesignRestored]:
    """What the architects handed in, and with it the milestones of the sprints to come."""
    for row in rows:
        kept = read_json(folder / "design" / f"design-{number_of(row.task.id)}.json")
        if row.task.role is Role.architect and kept:
            try:
                yield session_events.DesignRestored(row.task.id, msgspec.convert(kept, Design))
            except msgspec.ValidationError:
                continue


def sprints(meta: Mapping[str, object], before: int) -> Iterator[session_events.SprintEnded]:
    """How the sprints before this one went."""
    history = meta.get("sprint_history")
    for kept in history if isinstance(history, list) else ():
        try:
            sprint = msgspec.convert(kept, Sprint)
            number = int(sprint.sprint_id.removeprefix("sprint-"))
        except ValueError:
            continue
        if number < before:
            yield session_events.SprintEnded(number, _record(sprint))


def messages(folder: Path, team: str) -> Iterator[session_events.MessageSent]:
    """What was on the bus, which older versions kept for each team; a line that is no message is skipped."""
    own, older = folder / MESSAGES, folder.parents[1] / ".team-msg" / Path(team).name / "messages.jsonl"
    try:
        lines = (own if own.exists() else older).read_bytes().split(b"\n")
    except OSError:
        return
    for line in lines:
        try:
            yield msgspec.json.decode(line, type=Line).as_sent()
        except (ValueError, OverflowError, RecursionError):
            continue


def _record(sprint: Sprint) -> session_events.SprintRecord:
    return session_events.SprintRecord(
        pipeline=sprint.pipeline,
        expected=sprint.expected_velocity,
        velocity=sprint.velocity,
        mean_score=sprint.mean_review_score,
        rounds=sprint.gc_rounds,
        worked=sprint.what_worked,
        failed=sprint.what_failed,
        learned=sprint.patterns_learned,
        debt=sprint.tech_debt,
    )
