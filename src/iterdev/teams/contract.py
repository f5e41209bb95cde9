"""What a team is: the rules that the kernel asks for, and all that the other layers need to know of it.

A team is a value of a class that inherits from `Team`, listed in `teams/table.py`. It defines its name, its roles,
`plan` and what differs from the defaults.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from iterdev.core import ids, prompts, results
from iterdev.core.collaboration.messages import COORDINATOR, COORDINATOR_TYPES
from iterdev.core.prompts import PromptContext, TeamParts
from iterdev.core.request import Request
from iterdev.core.results import Discovery
from iterdev.core.rules.table_edits import TableRow
from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session.events import Entry, Event, Gate
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.settings import Settings, TimeLimits
from iterdev.core.types import Engine, Role, TaskFields, TaskId
from iterdev.core.verification import SuiteReport
from iterdev.core.views.team import TeamViews
from iterdev.tracker.state import TrackerRule

Value = TypeVar("Value")
SessionRules = Callable[[State, Entry], Iterable[TrackerRule]]


class NoFields(TaskFields, Struct, frozen=True, tag="none", gc=False):
    """The fields of a task of a team that adds none."""


class TableColumns(Struct, frozen=True, kw_only=True):
    order: tuple[str, ...]
    """All columns of tasks.csv; those before `status` are the plan."""
    results: tuple[str, ...]
    """The team's own result columns."""


def common_columns(plan: tuple[str, ...] = (), results: tuple[str, ...] = ()) -> TableColumns:
    """The columns that every team has, with the team's own behind the role and behind the findings."""
    before, after = ("id", "title", "description", "role"), ("deps", "context_from", "exec_mode", "wave")
    return TableColumns(order=(*before, *plan, *after, "status", "findings", *results, "error"), results=results)


def cell_value(known: Mapping[str, Value], column: str, cell: str) -> Value:
    """What a cell names; raises ValueError with a sentence that lists what it may name."""
    # To look a word up is much faster than to call its enum, and a table may have many rows.
    if value := known.get(cell):
        return value
    raise ValueError(f'{column} is "{cell}", expected one of {", ".join(known)}')


def as_json(document: object) -> str:
    """The text of a JSON file in a session folder."""
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


class Records(Struct, frozen=True, kw_only=True):
    session: Mapping[str, object] = {}
    """session.json"""
    ledger: Mapping[str, object] = {}
    """task-ledger.json"""
    metrics: Mapping[str, object] = {}
    """The metrics in task-ledger.json."""
    meta: Mapping[str, object] = {}
    """.msg/meta.json"""
    files: Mapping[str, object] = {}
    """Records of its own, by file name."""


class Analyzer(Struct, frozen=True, kw_only=True):
    """The question that an agent is asked about a requirement before the session exists."""

    task: str
    role: Role
    """The role whose agent is asked."""
    answer: type[Struct]
    prompt: Callable[[str, str], str]
    """Takes the requirement, and the file that describes the project if there is one."""


class Team(TeamRules, TeamViews, Protocol):
    workers: tuple[Role, ...]
    """The roles whose tasks agents do."""
    pipelines: tuple[str, ...] = ()
    message_types: Mapping[str, tuple[str, ...]] = {COORDINATOR: COORDINATOR_TYPES}
    """The types of messages that belong to one sender."""
    event_types: tuple[type, ...] = ()
    """The events of its own, for decoding the journal."""
    task_fields: type[Struct] = NoFields
    """What it adds to a task, for decoding the journal."""
    columns: TableColumns = common_columns()
    folders: tuple[str, ...] = ()
    """Of its documents, in the session folder; they are there from the beginning, and are exported."""
    analyzer: Analyzer | None = None
    tracker_rules: SessionRules | None = None
    """What an entry of a session means for the issue tracker; the state is the one after the entry."""
    time_limits: TimeLimits = TimeLimits()
    """The defaults of limits that the configuration does not name."""

    def suggested_pipeline(self, requirement: str) -> tuple[str, str]:
        """The pipeline that the text alone speaks for, and why in a few words; empty if a team has only one."""
        return "", ""

    def session_prefix(self, engine: Engine) -> str:
        return self.name

    def session_slug(self, request: Request) -> str:
        """The words in the id of a session."""
        return ids.slug(request.requirement)

    def started(self, request: Request, settings: Settings, agents: Mapping[Role, str]) -> Sequence[Event]:
        """The team's first events; raises `UserError` if the request does not fit the configuration."""
        return ()

    def settings_changed(self, state: State, settings: Settings) -> Sequence[Event]:
        """What a change of the configuration means for a session that is resumed."""
        return ()

    def choice_on_resume(self, gate: Gate) -> str | None:
        """The answer that resuming a session gives to an open gate; None if the user has to answer it."""
        return None

    def reopened(self, state: State) -> Sequence[Event]:
        """What has to be forgotten when an archived session is opened again."""
        return ()

    def roles_needed(self, state: State) -> set[Role]:
        """The roles whose agents the session will need, as far as is known."""
        return set(self.workers)

    def agents_needed(self, state: State) -> set[str]:
        """Agents that tasks to come will name themselves, instead of that of their role."""
        return set()

    def plan_cells(self, task: Task) -> Mapping[str, str]:
        """The cells of its own plan columns."""
        return {}

    def result_cells(self, state: State, task: TaskId) -> Mapping[str, str]:
        return {}

    def read_fields(self, cells: Mapping[str, str]) -> TaskFields:
        """What the team's plan columns say; raises ValueError with a sentence about the cell that is wrong."""
        return NoFields()

    def check_results(self, cells: Mapping[str, str]) -> object:
        """Raises ValueError with a sentence about the result cell that is wrong."""
        return None

    def table_edited(self, state: State, rows: Sequence[TableRow]) -> Iterable[Event]:
        """What edited columns of the team mean; `state` is the one before the edit."""
        return ()

    def prepared(self, documents: Mapping[str, object], rows: Sequence[TableRow]) -> object:
        """What a session was started with besides its request, as its folder tells; for a lost journal."""
        return None

    def restored(self, documents: Mapping[str, object], rows: Sequence[TableRow]) -> Sequence[Event]:
        """What the documents of a session folder say, when a lost journal is made again."""
        return ()

    def prompt_parts(self, state: State, task: Task, context: PromptContext) -> TeamParts:
        return TeamParts(introduction=f"You are the {task.role}.")

    def previous_context(self, state: State, task: TaskId) -> str:
        """What the tasks before found, for the file of a wave."""
        return prompts.previous_context(state, task)

    def change_shown_since(self, state: State, task: Task) -> str:
        """The commit since which the task's prompt shows what was changed; empty if it shows nothing of it."""
        return ""

    def files_of_others(self, state: State, task: Task) -> Collection[str]:
        """Files of that change that are not the task's matter."""
        return ()

    def result_schema(self, role: Role) -> Mapping[str, object]:
        return results.schema(self.roles[role].result)

    def issues_of(self, task: Task) -> tuple[str, ...]:
        """The ids of the issues that a task is about."""
        return ()

    def planned_files(self, state: State, task: Task) -> tuple[str, ...]:
        """The files that have to be there when the task is done."""
        return ()

    def commit_body(self, state: State, task: Task) -> tuple[str, ...]:
        """The lines of the commit's message below the title of the task."""
        return ()

    def baseline(self, state: State) -> tuple[SuiteReport, ...]:
        """The test runs on the session's base, if they have been made."""
        return ()

    def tasks_of_round(self, state: State, number: int) -> tuple[TaskId, ...]:
        """The tasks that changed something in a fix round, in the order of the table."""
        return ()

    def documents(self, state: State, since: State | None = None) -> Mapping[str, str]:
        """Path in the session folder to text; after an earlier state, only what may have changed."""
        return {}

    def discoveries(self, state: State, recorded: Sequence[Event]) -> Sequence[tuple[TaskId, Discovery]]:
        """What is put on the discovery board because of events that were recorded just now, in the name of a task."""
        return ()

    def records(self, state: State) -> Records:
        return Records()

    def ledger_entry(self, state: State, task: TaskId) -> Mapping[str, object]:
        return {}

    def shown_otherwise(self, state: State, since: State) -> Iterable[TaskId]:
        """Tasks of which `result_cells` or `ledger_entry` may say something else than in an earlier state.

        Those need not be among them whose row, progress or dependants are not the same any more.
        """
        return state.tasks.plan
