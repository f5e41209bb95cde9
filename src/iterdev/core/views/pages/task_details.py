"""Everything about one task: what it is, what it waits for and is waited for by, and what its attempts left."""

from datetime import tzinfo

from msgspec import Struct

from iterdev.core.collaboration.checkpoints import Checkpoint
from iterdev.core.collaboration.messages import Message
from iterdev.core.ids import ZONE
from iterdev.core.session.state import State
from iterdev.core.types import TaskId
from iterdev.core.views.tasks import TaskView, task_view
from iterdev.core.views.team import TeamViews
from iterdev.core.views.why import why

MESSAGES = 100
"""The newest messages of a task that are shown."""


class TaskDetails(Struct, frozen=True, kw_only=True):
    task: TaskView
    description: str
    before: tuple[TaskId, ...]
    """Tasks that depend on it."""
    why: tuple[str, ...]
    """What it waits for, or what became of it."""
    changed: tuple[str, ...]
    """The files that its last attempt changed."""
    commit: str
    kept: tuple[str, ...]
    """Commits of attempts that did not succeed."""
    denied: tuple[str, ...]
    messages: tuple[Message, ...]
    """The newest first."""
    locks: tuple[str, ...]
    """Resources that it holds."""
    waits_for: str
    """The resource that it was refused."""
    checkpoints: tuple[Checkpoint, ...]


def task_details(
    state: State, team: TeamViews, name: TaskId, *, engine_alive: bool = True, zone: tzinfo = ZONE
) -> TaskDetails:
    row, progress, wanted = state.tasks.plan[name], state.tasks.progress[name], state.locks.wanted.get(name)
    about = [one for one in reversed(state.messages.sent) if one.data.get("task") == name]
    return TaskDetails(
        task=task_view(state, team, name, engine_alive=engine_alive, zone=zone),
        description=row.description,
        before=tuple(other.id for other in state.tasks.plan.values() if name in other.deps),
        why=tuple(why(state, team, name, engine_alive=engine_alive, zone=zone)),
        changed=progress.changed,
        commit=progress.commit or "",
        kept=progress.unmerged_commits,
        denied=progress.denied,
        messages=tuple(about[:MESSAGES]),
        locks=tuple(resource for resource, lock in state.locks.held.items() if lock.task == name),
        waits_for=wanted.resource if wanted else "",
        checkpoints=state.checkpoints.get(name, ()),
    )
