"""A toy team, which shows that the kernel knows no team: a writer changes a file, and a checker reads it.

When the checker says "again", one more writer and checker follow, up to a limit; then the session is over.
"""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.core import ids
from iterdev.core.results import Result
from iterdev.core.rules.team_rules import Interpretation, Procedure, RoleSpec
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import Event, Finished, RollbackStarted, TasksAdded, TeamEvent
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task, joining
from iterdev.core.task_description import Brief
from iterdev.core.types import TaskFields, TaskId, TaskKind, TeamState
from iterdev.teams.contract import PlanCells, TableColumns, Team

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


class ToyDraft:
    def __init__(self, part: ToyState) -> None:
        self.part = part

    def apply(self, event: object, at: float, seq: int) -> None:
        if isinstance(event, RollbackStarted):
            self.part = ToyState({task: again for task, again in self.part.again.items() if task not in event.undone})
        elif isinstance(event, Checked):
            self.part = ToyState({**self.part.again, event.task: event.again})


ROLES = {
    "writer": RoleSpec(name="writer", prefix="WRITE", procedure=Procedure.change, result=Result, loops=True),
    "checker": RoleSpec(name="checker", prefix="CHECK", procedure=Procedure.read, result=Check),
}
COLUMNS = (
    *("id", "title", "description", "role", "deps", "context_from", "exec_mode", "wave"),
    *("status", "findings", "again", "error"),
)


class Toy(Team):
    name = "toy"
    roles = ROLES
    workers = tuple(ROLES)
    pipelines = ("loop",)
    event_types = (Checked,)
    folded = frozenset({Checked, RollbackStarted})
    task_fields = ToyFields
    columns = TableColumns(order=COLUMNS, results=("again",))
    conflict_brief = Brief(purpose="Merge", success="merged", steps=("Merge both",), expected="a file", constraints="-")
    initial = staticmethod(ToyState)

    def role_for(self, text: str) -> str:
        return "writer"

    def draft(self, part: TeamState) -> ToyDraft:
        assert isinstance(part, ToyState)
        return ToyDraft(part)

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
