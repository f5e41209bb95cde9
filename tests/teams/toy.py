"""A toy team, which shows that the kernel knows no team: a writer changes a file, and a checker reads it.

When the checker says "again", one more writer and checker follow, up to a limit; then the session is over.
"""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core import ids
from iterdev.core.results import Result
from iterdev.core.rules.team_rules import Interpretation, Procedure, RoleSpec
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import Event, Finished, RollbackStarted, TasksAdded, TeamEvent
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task, joining
from iterdev.core.types import TaskId, TeamState
from iterdev.teams.contract import NoFields, Team, common_columns

LIMIT = 4
"""Checks of one session."""


class Check(Result, frozen=True, kw_only=True):
    again: bool = False


class Checked(TeamEvent, frozen=True, tag=True):
    task: TaskId
    again: bool


class ToyState(TeamState, Struct, frozen=True):
    again: Mapping[TaskId, bool] = {}


class Toy(Team):
    name = "toy"
    roles: Mapping[str, RoleSpec] = {
        "writer": RoleSpec(name="writer", prefix="WRITE", procedure=Procedure.change, result=Result, loops=True),
        "checker": RoleSpec(name="checker", prefix="CHECK", procedure=Procedure.read, result=Check),
    }
    workers = tuple(roles)
    event_types = (Checked,)
    folded = frozenset({Checked, RollbackStarted})
    columns = common_columns(results=("again",))
    initial = staticmethod(ToyState)

    def evolve(self, part: ToyState, event: Checked | RollbackStarted, at: float) -> ToyState:
        if isinstance(event, RollbackStarted):
            return ToyState({task: again for task, again in part.again.items() if task not in event.undone})
        return ToyState({**part.again, event.task: event.again})

    def plan(self, state: State) -> tuple[Event, ...]:
        known, text = state.tasks.plan, state.session.requirement
        tasks, deps = [], tuple(known)[-1:]
        for role in self.roles.values():
            common = {"title": text, "description": text, "fields": NoFields(), "deps": deps, "context_from": deps}
            tasks.append(Task(id=ids.next_id(role.prefix, known), role=role.name, **common))
            deps = (tasks[-1].id,)
        return (TasksAdded(joining(tasks, known)),)

    def finish(self, state: State) -> tuple[Event, ...]:
        checks = [task.id for task in state.tasks.of_role("checker")]
        asks = bool(checks) and state.team.again.get(checks[-1], False)
        return self.plan(state) if asks and len(checks) < LIMIT else (Finished(),)

    def interpret(self, state: State, task: Task, success: Success) -> Interpretation:
        result = success.result
        return Interpretation(events=(Checked(task.id, result.again),) if isinstance(result, Check) else ())

    def has_output(self, state: State, task: Task) -> bool:
        return task.id in state.team.again or super().has_output(state, task)

    def result_cells(self, state: State, task: TaskId) -> dict[str, str]:
        return {"again": str(state.team.again.get(task, ""))}

    def documents(self, state: State, since: State | None = None) -> dict[str, str]:
        return {"checks.txt": "\n".join(f"{task}: {again}" for task, again in state.team.again.items())}


class Writers(Toy):
    """As many writers side by side as the requirement says; their work is tested before it lands."""

    name = "writers"
    roles: Mapping[str, RoleSpec] = Toy.roles | {"writer": replace(Toy.roles["writer"], tested=True)}

    def plan(self, state: State) -> tuple[Event, ...]:
        names = (TaskId(f"WRITE-{number:03d}") for number in range(1, int(state.session.requirement) + 1))
        return (TasksAdded(tuple(written(name) for name in names)),)

    def finish(self, state: State) -> tuple[Event, ...]:
        return (Finished(),)


def written(task: TaskId) -> Task:
    """A task of a writer that waits for nothing."""
    return Task(id=task, title=f"Write {task}", description="write it", role="writer", fields=NoFields(), wave=1)


TOY = Toy()
WRITERS = Writers()
