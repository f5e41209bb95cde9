"""The roles and pipelines of the issue team, and what it adds to a task."""

from enum import StrEnum
from typing import cast

from msgspec import Struct

from iterdev.core.rules.team_rules import Procedure, RoleSpec
from iterdev.core.session.tasks import Task
from iterdev.core.types import TaskFields
from iterdev.teams.issues.results import Audit, Build, Exploration, Integration, Planning


class Role(StrEnum):
    explorer = "explorer"
    planner = "planner"
    reviewer = "reviewer"
    integrator = "integrator"
    implementer = "implementer"


WORKERS = tuple(Role)
"""In the order in which they come into a session."""


ROLES: dict[str, RoleSpec] = {
    role.name: role
    for role in (
        RoleSpec(
            name=Role.explorer,
            prefix="EXPLORE",
            procedure=Procedure.read,
            result=Exploration,
            output="context report",
            at_most=5,
        ),
        RoleSpec(
            name=Role.planner,
            prefix="SOLVE",
            procedure=Procedure.read,
            result=Planning,
            output="solution",
            loops=True,
            at_most=1,
        ),
        RoleSpec(name=Role.reviewer, prefix="AUDIT", procedure=Procedure.read, result=Audit, output="audit", at_most=1),
        RoleSpec(
            name=Role.integrator,
            prefix="MARSHAL",
            procedure=Procedure.read,
            result=Integration,
            output="execution queue",
            at_most=1,
        ),
        RoleSpec(
            name=Role.implementer,
            prefix="BUILD",
            procedure=Procedure.change,
            result=Build,
            output="commit",
            loops=True,
            tested=True,
            at_most=3,
        ),
    )
}


AUTO = "auto"
"""The execution method that leaves the choice of the agent to the size of the solutions."""


class Pipeline(StrEnum):
    quick = "quick"
    full = "full"
    batch = "batch"


class Verdict(StrEnum):
    approved = "approved"
    concerns = "concerns"
    rejected = "rejected"


class Fields(TaskFields, Struct, frozen=True, kw_only=True, tag="issues", gc=False):
    issues: tuple[str, ...]
    """The ids of the issues that the task is about."""
    method: str = ""
    """The execution method of a BUILD task: an agent, or `AUTO`."""
    cycle: int = 0
    """0 for first work, n for the n-th fix cycle."""

    def for_start(self) -> None:
        """Nothing: each task has issues of its own."""


def fields(task: Task) -> Fields:
    return cast("Fields", task.fields)
