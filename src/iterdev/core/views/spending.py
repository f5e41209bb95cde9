"""What a session has spent: by role, by task and by agent. What spent nothing is left out."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from iterdev.core.limits.spending import in_one_line
from iterdev.core.results import Usage
from iterdev.core.session.state import State


class SpendingView(Struct, frozen=True, kw_only=True):
    roles: Mapping[str, Usage]
    tasks: Mapping[str, Usage]
    agents: Mapping[str, Usage]

    @property
    def by_role_and_agent(self) -> str:
        return " · ".join(in_one_line(usages) for usages in (self.roles, self.agents) if usages)


def spending_view(state: State) -> SpendingView:
    tasks = state.tasks
    rows = [(task, progress.usage) for task, progress in tasks.rows()]
    removed = (progress.usage for task, progress in tasks.removed.items() if task not in tasks.progress)
    undone = ("rolled back", sum(removed, Usage()))
    return SpendingView(
        roles=_sums([*((task.role, usage) for task, usage in rows), undone]),
        tasks=_sums([*((task.id, usage) for task, usage in rows), undone]),
        agents=_sums(state.spending.by_agent.items()),
    )


def _sums(parts: Iterable[tuple[str, Usage]]) -> dict[str, Usage]:
    total: dict[str, Usage] = {}
    for name, usage in parts:
        if usage != Usage():
            total[str(name)] = total.get(str(name), Usage()) + usage
    return total
