"""Rebuilds a session's journal from its folder, when the journal is missing or damaged.

Unreadable parts are skipped.
"""

import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from iterdev.core import ids
from iterdev.core.collaboration.checkpoints import CheckpointSaved
from iterdev.core.collaboration.feedback import Feedback, FeedbackGiven
from iterdev.core.collaboration.messages import MessagesCleared, MessageSent
from iterdev.core.collaboration.tech_debt import Debt, DebtIdentified
from iterdev.core.encodable import encodable_document
from iterdev.core.errors import UserError
from iterdev.core.policy import Policy
from iterdev.core.request import Request
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.session import events
from iterdev.core.settings import Settings
from iterdev.core.types import Engine, Phase, SessionId
from iterdev.store import atomic_files
from iterdev.store.session_folder import json_records, older_editions, tasks_csv
from iterdev.store.session_folder.find import TABLE, has_older_files
from iterdev.store.session_folder.json_records import MetaRecord, SessionRecord, read_fields
from iterdev.store.session_folder.projector import MESSAGES
from iterdev.teams.contract import Team

SESSION, META = "session.json", ".msg/meta.json"
SUFFIX = re.compile(r"[0-9a-f]{4,64}")
Document = Mapping[str, object]


def session_events(
    folder: Path, engine: Engine, teams: Mapping[str, Team], *, base: str, branch: str
) -> tuple[float, list[events.Event]]:
    """When the session was created, and its events; what the folder does not say gets a default and a warning."""
    older = _read_json(folder / "team-session.json")
    document = {**older, "requirement": older.get("task"), **_read_json(folder / SESSION)}
    kept = read_fields(document, SessionRecord)
    team = teams.get(kept.team) or _team_by_name(folder.name, engine, teams)
    shared = _read_json(folder / META) or _read_json(folder / "shared-memory.json")
    meta = read_fields(shared, MetaRecord)
    rows, warning = _rows(folder, document, team)
    requirement = kept.requirement or meta.task_description or _requirement_from(folder.name)
    session = events.Session(
        id=SessionId(folder.name),
        team=team.name,
        engine=engine,
        requirement=requirement,
        folder=ids.folder(engine, SessionId(folder.name)),
        base=kept.base or base,
        branch=kept.user_branch or branch,
        agents={role: agent for role, agent in kept.agents.items() if role in team.workers},
        team_name=kept.team_name or team.name,
        by_hand=kept.by_hand,
        # Hosts may still work for the session whose journal was lost.
        suffix=secrets.token_hex(4),
        former_suffixes=tuple(filter(SUFFIX.fullmatch, dict.fromkeys((*kept.former_suffixes, kept.suffix)))),
    )
    policy = kept.policy if kept.policy.concurrency > 0 else Policy()
    others = {str(path.relative_to(folder)): _read_json(path) for path in folder.glob("*/*.json")}
    documents = {SESSION: document, META: shared, **others}
    prepared = team.prepared(documents, rows)
    pipeline = _pipeline(document, rows, team)
    request = Request(requirement=requirement, pipeline=pipeline, engine=engine, prepared=prepared)
    found: list[events.Event] = [
        events.SessionStarted(session, policy),
        *team.started(request, _settings(document), {}),
    ]
    if rows:
        edits = tuple(row.edit for row in rows)
        found += [events.TasksAdded(tuple(edit.task for edit in edits)), events.TableEdited(edits)]
        found += team.restored(documents, rows)
    found += collaboration_events(meta)
    sent = tuple(_messages(folder, session.team_name))
    found += _ending(kept, meta, sent)
    # The announcements of the events so far are among the restored messages already, in their own words.
    found += (MessagesCleared(), *sent) if sent else ()
    found.append(events.Warned(warning))
    return _created(kept), found


def _team_by_name(name: str, engine: Engine, teams: Mapping[str, Team]) -> Team:
    """The team that the id of a session tells, or else the default one."""
    fitting = (team for team in teams.values() if name.startswith(f"{team.session_prefix(engine)}-"))
    return next(fitting, next(iter(teams.values())))


def _rows(folder: Path, document: Document, team: Team) -> tuple[Sequence[TableRow], str]:
    """The tasks, and what the user should know about their origin."""
    if not (folder / TABLE).exists() and has_older_files(folder):
        older = older_editions.read(folder, document, team)
        return older.rows, older.warning
    rows = tasks_csv.parse(_text(folder / TABLE), team, f"{folder.name}/{TABLE}")
    return rows, "the journal was missing or damaged; this session was rebuilt from its folder"


def collaboration_events(meta: MetaRecord) -> Iterator[events.CollaborationEvent]:
    """Feedback, debt and checkpoints, oldest first. Locks ended with the processes that held them."""
    for record in reversed(meta.user_feedback_items):
        if feedback := json_records.read_item(record, Feedback):
            yield FeedbackGiven(feedback)
    for record in reversed(meta.tech_debt_items):
        if debt := json_records.read_item(record, Debt):
            yield DebtIdentified(debt)
    for task, records in meta.task_checkpoints.items():
        for record in reversed(records):
            if isinstance(record, dict) and isinstance(pointer := record.get("state_data_pointer"), str):
                yield CheckpointSaved(task=task, pointer=pointer)


def _pipeline(document: Document, rows: Sequence[TableRow], team: Team) -> str | None:
    named = document.get("pipeline") or document.get("pipeline_mode")
    if isinstance(named, str) and named in team.pipelines:
        return named
    return team.plan_cells(rows[0].edit.task).get("pipeline") if rows else None


def _settings(document: Document) -> Settings:
    rounds, default = document.get("max_gc_rounds"), Settings()
    if not isinstance(rounds, int) or rounds < 0:
        return default
    return msgspec.structs.replace(default, limits=msgspec.structs.replace(default.limits, rounds=rounds))


def _ending(kept: SessionRecord, meta: MetaRecord, sent: Sequence[MessageSent]) -> Iterator[events.Event]:
    """What had landed, and whether the session was over."""
    if kept.tip:
        yield events.EngineStarted(0, kept.tip)
    ended = Phase.completed if sent and sent[-1].kind == "shutdown" else Phase.active
    if (kept.status or meta.status or ended) == Phase.completed:
        yield events.Finished()
    if kept.archived_at:
        yield events.Archived()


def _messages(folder: Path, team: str) -> Iterator[MessageSent]:
    """The messages of the session, which older versions kept for each team."""
    own, older = folder / MESSAGES, folder.parents[1] / ".team-msg" / Path(team).name / "messages.jsonl"
    try:
        lines = (atomic_files.read(own if own.exists() else older) or b"").split(b"\n")
    except OSError:
        return
    for line in lines:
        with suppress(ValueError, OverflowError, RecursionError):
            yield msgspec.json.decode(line, type=json_records.MessageRecord).as_sent()


def _read_json(path: Path) -> Document:
    try:
        document = encodable_document(json.loads(atomic_files.read(path) or b""))
    except (OSError, ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def _text(path: Path) -> str:
    hint = "restore the file, or remove the folder"
    if not path.is_file():
        raise UserError(f'Cannot read "{path}": it is not a regular file', hint=hint)
    try:
        return (atomic_files.read(path) or b"").decode()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f'Cannot read "{path}": {error}', hint=hint) from error


def _requirement_from(name: str) -> str:
    """The words of the id, without prefix and date."""
    return re.sub(r"^(ids|IDS|issue|TISL)-|-\d{4}-?\d{2}-?\d{2}(-\d+)?$", "", name).replace("-", " ") or name


def _created(kept: SessionRecord) -> float:
    with suppress(ValueError, OverflowError):
        return datetime.fromisoformat(kept.created_at).timestamp()
    return 0.0
