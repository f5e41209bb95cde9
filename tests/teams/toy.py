"""A toy team, which shows that the kernel knows no team: a writer changes a file, and a checker reads it.

When the checker says "again", one more writer and checker follow, up to a limit; then the session is over.
"""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.core import ids, results
from iterdev.core.collaboration.messages import COORDINATOR, COORDINATOR_TYPES
from iterdev.core.draft import PureDraft
from iterdev.core.prompts import TeamParts
from iterdev.core.results import Result
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import Event, Finished, RollbackStarted, TasksAdded, TeamEvent
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task, joining
from iterdev.core.session.team_rules import Interpretation, Procedure, RoleSpec
from iterdev.core.task_description import Brief
from iterdev.core.types import TaskFields, TaskId, TaskKind, TeamState
from iterdev.core.views.team import TaskNotes, TeamReport, TeamView
from iterdev.teams.contract import PlanCells, Records, TableColumns

PREFIXES = {"WRITE": "writer", "CHECK": "checker"}
LIMIT = 4
"""Checks of one session."""


class ToyFields(TaskFields, Struct, frozen=True, tag="toy"):
    """A task has nothing that only this team knows."""


class Check(Result, frozen=True, kw_only=True):
    again: bool = False


class Checked(TeamEvent, frozen=True, tag=True):
    task: TaskId
    again: bool


class ToyState(TeamState, Struct, frozen=True):
    again: Mapping[TaskId, bool] = {}


def evolve(part: ToyState, event: object, _: float) -> ToyState:
    if isinstance(event, RollbackStarted):
        return ToyState({task: again for task, again in part.again.items() if task not in event.undone})
    assert isinstance(event, Checked)
    return ToyState({**part.again, event.task: event.again})


ROLES = {
    "writer": RoleSpec(name="writer", prefix="WRITE", procedure=Procedure.change, result=Result, loops=True),
    "checker": RoleSpec(name="checker", prefix="CHECK", procedure=Procedure.read, result=Check),
}
COLUMNS = (
    *("id", "title", "description", "role", "deps", "context_from", "exec_mode", "wave"),
    *("status", "findings", "again", "error"),
)


class Analyzer:
    role, task = "writer", "analysis"
    schema = staticmethod(dict)
    prompt = staticmethod(lambda requirement, _: requirement)
    decode = staticmethod(lambda _: "there is nothing to analyse")


class Toy:
    name = "toy"
    roles: Mapping[str, RoleSpec] = ROLES
    workers = tuple(ROLES)
    pipelines = ("loop",)
    message_types: Mapping[str, tuple[str, ...]] = {COORDINATOR: COORDINATOR_TYPES}
    event_types = (Checked,)
    decided = ()
    folded = frozenset({Checked, RollbackStarted})
    task_fields = ToyFields
    columns = TableColumns(order=COLUMNS, results=("again",))
    analyzer = Analyzer()
    conflict_brief = Brief(purpose="Merge", success="merged", steps=("Merge both",), expected="a file", constraints="-")

    plan_note = nothing_to_do = completion_error = staticmethod(lambda *_: "")
    before_work = decision = follow_up = rolled_back = staticmethod(lambda *_: ())
    started = settings_changed = reopened = table_edited = restored = staticmethod(lambda *_: ())
    planned_files = discoveries = staticmethod(lambda *_: ())
    plan_cells = ledger_entry = staticmethod(lambda *_: {})
    announce = baseline = choice_on_resume = check_results = staticmethod(lambda *_: None)
    sprint = pass_rate = listed_choices = staticmethod(lambda *_: 1)
    session_prefix = staticmethod(lambda _: "toy")
    session_words = staticmethod(ids.slug)
    role_for = staticmethod(lambda _: "writer")
    roles_needed = staticmethod(lambda _: set(ROLES))
    records = staticmethod(lambda _: Records(session={}, ledger={}, metrics={}, meta={}, files={}))
    result_schema = staticmethod(lambda role: results.schema(ROLES[role].result))
    prompt_parts = staticmethod(lambda _, task, __: TeamParts(introduction=f"You are the {task.role}."))
    view = staticmethod(lambda _: TeamView(pipeline="loop"))
    task_notes = staticmethod(lambda *_: TaskNotes())
    report = staticmethod(lambda _: TeamReport(title="Toy Report"))
    initial = staticmethod(ToyState)

    def draft(self, part: TeamState) -> PureDraft[TeamState]:
        return PureDraft(part, evolve)

    def plan(self, state: State) -> tuple[Event, ...]:
        write, check = (ids.next_id(prefix, state.tasks.plan) for prefix in PREFIXES)
        before = tuple(state.tasks.plan)[-1:]
        rows = (self._task(write, state, before), self._task(check, state, (write,)))
        return (TasksAdded(joining(rows, state.tasks.plan)),)

    def _task(self, name: TaskId, state: State, deps: tuple[TaskId, ...]) -> Task:
        role = PREFIXES[ids.prefix_of(name)]
        text = state.session.requirement
        return Task(id=name, title=text, description=text, role=role, fields=ToyFields(), deps=deps, context_from=deps)

    def finish(self, state: State) -> tuple[Event, ...]:
        checks = [task.id for task in state.tasks.of_role("checker")]
        asks = bool(checks) and state.team.again.get(checks[-1], False)
        return self.plan(state) if asks and len(checks) < LIMIT else (Finished(),)

    def interpret(self, _: State, task: Task, success: Success) -> Interpretation:
        result = success.result
        return Interpretation(events=(Checked(task.id, result.again),) if isinstance(result, Check) else ())

    def has_output(self, state: State, task: Task) -> bool:
        return task.id in state.team.again or state.tasks.progress[task.id].commit is not None

    def result_cells(self, state: State, task: TaskId) -> dict[str, str]:
        return {"again": str(state.team.again.get(task, ""))}

    def read_plan(self, cells: Mapping[str, str]) -> PlanCells:
        role = PREFIXES[ids.prefix_of(cells["id"])]
        return PlanCells(role=role, fields=ToyFields(), kind=TaskKind.work)

    def documents(self, state: State, since: State | None = None) -> dict[str, str]:
        del since
        return {"checks.txt": "\n".join(f"{task}: {again}" for task, again in state.team.again.items())}


TOY = Toy()
