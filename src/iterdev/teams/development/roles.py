"""The roles, pipelines and signals of the development team, and what it adds to a task."""

from enum import StrEnum
from typing import cast

from msgspec import Struct

from iterdev.core.rules.team_rules import Procedure, RoleSpec
from iterdev.core.session.tasks import Task
from iterdev.core.types import TaskFields
from iterdev.teams.development.results import Decision, Design, Development, Review, Testing


class Role(StrEnum):
    architect = "architect"
    developer = "developer"
    tester = "tester"
    reviewer = "reviewer"
    gc_controller = "gc-controller"


WORKERS = (Role.architect, Role.developer, Role.tester, Role.reviewer)
"""In the order in which they come into a sprint."""


ROLES: dict[str, RoleSpec] = {
    role.name: role
    for role in (
        RoleSpec(name=Role.architect, prefix="DESIGN", procedure=Procedure.read, result=Design, output="design"),
        RoleSpec(
            name=Role.developer,
            prefix="DEV",
            procedure=Procedure.change,
            result=Development,
            output="commit",
            loops=True,
        ),
        RoleSpec(name=Role.tester, prefix="VERIFY", procedure=Procedure.verify, result=Testing, output="test run"),
        RoleSpec(name=Role.reviewer, prefix="REVIEW", procedure=Procedure.read, result=Review, output="review"),
        RoleSpec(
            name=Role.gc_controller, prefix="GC-CHECK", procedure=Procedure.decide, result=Decision, output="decision"
        ),
    )
}


class Pipeline(StrEnum):
    patch = "patch"
    sprint = "sprint"
    multi_sprint = "multi-sprint"


class Signal(StrEnum):
    revision_needed = "REVISION_NEEDED"
    converged = "CONVERGED"


class Part(StrEnum):
    """Which part of the breakdown a developer's task does."""

    own = "own"
    """The items that fall to it."""
    rest = "rest"
    """What the tasks before it leave; there may be nothing."""


class Fields(TaskFields, Struct, frozen=True, kw_only=True, tag="development", gc=False):
    pipeline: Pipeline
    sprint: int = 1
    round: int = 0
    """0 for first work, n for the n-th fix round of its sprint."""
    part: Part = Part.own


def fields(task: Task) -> Fields:
    return cast("Fields", task.fields)
