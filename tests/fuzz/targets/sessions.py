"""Files that people write, and those of a session folder, which agents can write too."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
from tests.fuzz.target import Target, files_target, text_target

from iterdev.app import logs
from iterdev.app.start import read_request
from iterdev.core import ids, task_description
from iterdev.core.encodable import encodable
from iterdev.core.errors import IterdevError, did_you_mean
from iterdev.core.results import Discovery
from iterdev.core.types import Engine
from iterdev.engine.repository import read_settings
from iterdev.host import provider_pauses
from iterdev.host.secrets import redactor
from iterdev.store.journal import NAME, EventCodec, Journal
from iterdev.store.session_folder import discoveries, rebuild, tasks_csv, wisdom_files
from iterdev.store.session_log import create, read_state
from iterdev.surfaces.cli.output.wrapping import wrapped
from iterdev.teams.development import requirement_analysis
from iterdev.teams.development.team import DEVELOPMENT
from iterdev.teams.table import TEAMS

CODEC = EventCodec()

TABLE = """\
id,title,description,role,deps,context_from,exec_mode,wave,status,pipeline,sprint_num,gc_round
DEV-001,First,"PURPOSE: x
TASK: y",developer,,,csv-wave,1,pending,sprint,1,0
VERIFY-001,Check,Do it,tester,DEV-001;DEV-002,DEV-001,csv-wave,2,completed,sprint,1,0
DEV-002,Second,"a ""quoted"" word",developer,,,interactive,1,skipped,sprint,1,0
"""
SETTINGS = """\
[run]
agent = "mine"
concurrency = 3
sandbox = true
[limits]
attempt = 60
wave = 900.5
rounds = 2
[project]
test = "pytest -q"
ports = [3000, 3001]
[roles.developer]
agent = "mine"
file = "roles/developer.md"
[agents.mine]
command = ["python3", "tools/agent.py"]
env = ["A_KEY"]
[budgets]
session_usd = 1.5
"""
BOARD = """\
{"ts": "2026-11-18T10:00:00+08:00", "worker": "DEV-001", "type": "convention", "data": {"name": "tabs, not spaces"}}
{"ts": 1, "worker": null, "type": "dependency_found", "data": {"from": "a", "to": ["b"]}}
{"type": "gc_decision", "data": {"round": 1, "sprint": 2, "decision": "fix"}}
"""
SESSION = {
    "session_id": "ids-add-20261118",
    "team": "development",
    "requirement": "Add a greeting",
    "pipeline": "sprint",
    "status": "active",
    "base": "b" * 40,
    "tip": "c" * 40,
    "user_branch": "main",
    "agents": {"developer": "mine"},
    "policy": {"concurrency": 3, "auto": True},
    "created_at": "2026-11-18T10:00:00+08:00",
    "max_gc_rounds": 3,
    "completed_tasks": ["DEV-001"],
}
META = {
    "status": "active",
    "task_description": "Add a greeting",
    "user_feedback_items": [{"id": "FB-1", "text": "x", "severity": "high", "timestamp": "2026-11-18T10:00:00+08:00"}],
    "tech_debt_items": [{"id": "TD-1", "description": "old", "severity": "low", "category": "code"}],
    "task_checkpoints": {
        "DEV-001": [{"timestamp": "2026-11-18T10:00:00+08:00", "state_data_pointer": "checkpoints/a.json"}]
    },
}
MESSAGE = {
    "id": "MSG-001",
    "ts": "2026-11-18T10:00:00+08:00",
    "from": "developer",
    "to": "coordinator",
    "type": "impl_complete",
    "summary": "x",
    "data": {},
}
LEDGER = {
    "tasks": [{"id": "DEV-001", "title": "First", "owner": "developer", "status": "completed", "sprint_id": "sprint-1"}]
}
FOLDER = {
    "tasks.csv": TABLE,
    "session.json": json.dumps(SESSION),
    "team-session.json": json.dumps({"task": "x", "pipeline": "patch"}),
    ".msg/meta.json": json.dumps(META),
    ".msg/messages.jsonl": json.dumps(MESSAGE) + "\n",
    "task-ledger.json": json.dumps(LEDGER),
    "design/design-001.json": json.dumps({"task": "DESIGN-001", "work_items": [{"id": "1", "title": "t"}]}),
    "verify/verify-001.json": json.dumps({"task": "VERIFY-001", "pass_rate": 1.0, "tests": 3}),
    "review/review-001.json": json.dumps({"task": "REVIEW-001", "score": 9, "issues": []}),
}
EVENTS = (
    {"type": "Warned", "text": "x", "announced": False},
    {"type": "TaskFailed", "task": "DEV-001", "error": "x"},
    {"type": "MessageSent", "sender": "developer", "kind": "x", "summary": "s", "data": {"a": [1]}, "number": 3},
    {"type": "AttemptStarted", "task": "DEV-001", "number": 1, "agent": "mine", "base": "b" * 40},
    {"type": "ClockChanged", "seconds": 3600},
    {
        "type": "TasksAdded",
        "tasks": [
            {
                "id": "DEV-001",
                "title": "t",
                "description": "d",
                "role": "developer",
                "fields": {"type": "development", "pipeline": "sprint", "sprint": 1},
                "deps": ["DEV-002"],
            }
        ],
    },
)


def _table(text: str) -> None:
    for row in tasks_csv.parse(text, DEVELOPMENT):
        task_description.completed(
            row.edit.task.description,
            title=row.edit.task.title,
            scope=task_description.Scope(requirement="x", folder="y"),
            inner_loop=True,
        )


def _rebuilt(folder: Path) -> None:
    """The journal of a session folder, made again and written."""
    session = folder / "ids-add-20261118"
    at, events = rebuild.session_events(session, Engine.wave, TEAMS, base="b" * 40, branch="main")
    journal = Journal(folder / NAME)
    try:
        state = create(journal, events, at=at or 1.0)
        assert journal.read(state.session.id)
    finally:
        journal.close()


def _older(folder: Path) -> None:
    """The same of an earlier edition, which has no table."""
    (folder / "ids-add-20261118" / "tasks.csv").unlink()
    _rebuilt(folder)


def _board(folder: Path) -> None:
    path = folder / discoveries.NAME
    found = discoveries.read(path)
    discoveries.add(path, [Discovery(line.type, line.data) for line in found], worker="DEV-001", ts="t")
    wisdom_files.WisdomReader(folder).changed()
    msgspec.json.encode(found)


def _entry(data: bytes, _: Path) -> None:
    event = CODEC.decode(data)
    assert CODEC.decode(CODEC.encode(CODEC.encodable(event))) == CODEC.encodable(event)


def _words(text: str) -> None:
    """A text that the user gives as an argument, and what becomes of it."""
    stored = encodable(text)
    words = ids.slug(stored)
    ids.session_id("ids", words, Engine.beat, 1_790_000_000.0)
    for part in (stored, words, *stored.split()[:50]):
        ids.prefix_of(part)
        ids.number_of(part)
    ids.next_id("DEV", stored.split())
    requirement_analysis.analyse(stored)
    task_description.missing_sections(stored)
    did_you_mean(stored[:200], ["status", "resume"])
    wrapped(str(IterdevError(stored, hint=stored).message), 80)
    wrapped(stored[:20_000], 80)


def _request(folder: Path) -> None:
    read_request(folder / "request.md")
    redactor({}, [folder / ".env"])


def _journal_example() -> bytes:
    """A journal as SQLite writes it, with a session that has been planned."""
    with TemporaryDirectory(prefix="iterdev-fuzz-") as folder:
        for name, text in FOLDER.items():
            path = Path(folder, "ids-add-20261118", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        _rebuilt(Path(folder))
        return Path(folder, NAME).read_bytes()


def _journal(data: bytes, folder: Path) -> None:
    """Whatever became of a journal, it is read, or one sentence says that it cannot be."""
    (folder / NAME).write_bytes(data)
    journal = Journal(folder / NAME)
    try:
        journal.problems()
        journal.summaries()
        journal.held()
        for session in journal.by_activity():
            read_state(journal, session)
            journal.holder(session)
    finally:
        journal.close()


def _engine_log(text: str) -> None:
    for line in text.splitlines():
        logs._engine_line(logs.LogLine(1.0, "engine", line))


TARGETS: tuple[Target, ...] = (
    text_target("tables", _table, TABLE, TABLE.replace(",", "\t"), "id,description\nDEV-001,x\n"),
    files_target("settings", lambda folder: read_settings(folder, DEVELOPMENT.workers), {"iterdev.toml": SETTINGS}),
    files_target("session folders", _rebuilt, {f"ids-add-20261118/{name}": text for name, text in FOLDER.items()}),
    files_target("older session folders", _older, {f"ids-add-20261118/{name}": text for name, text in FOLDER.items()}),
    files_target("boards", _board, {discoveries.NAME: BOARD, "wisdom/learnings.md": "# Learnings\n- x (DEV-001)\n"}),
    Target(
        name="journal entries",
        run=_entry,
        examples=[json.dumps(event).encode() for event in EVENTS],
        refusals=(ValueError, LookupError, TypeError, OverflowError, RecursionError),
    ),
    Target(name="damaged journals", run=_journal, examples=[_journal_example()]),
    text_target(
        "words of the user", _words, "Fix the bug in `iterdev run` across modules", "DEV-001 DEV-fix-2 修复bug"
    ),
    files_target(
        "requests",
        _request,
        {"request.md": "# Add a greeting\n\nPlease.\n", ".env": "A_TOKEN='x y' # z\nB=c://u:p@h\n"},
    ),
    text_target(
        "engine logs",
        _engine_log,
        '{"ts": "2026-11-18T10:00:00.000+08:00", "effect": "land", "task": "A", "seconds": 0.1}\n',
    ),
    files_target(
        "pauses of providers",
        lambda folder: provider_pauses.read(folder, 1.0),
        {"paused-a.json": '{"type": "ProviderPaused", "provider": "acme", "until": 1790000000.5, "why": "429"}'},
    ),
)
