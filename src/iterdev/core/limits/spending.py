"""What a session has spent: by role, by task and by agent. Whoever spent nothing is not named."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from iterdev.core.results import Usage
from iterdev.core.session.state import State


class Spending(Struct, frozen=True, kw_only=True):
    roles: Mapping[str, Usage]
    tasks: Mapping[str, Usage]
    agents: Mapping[str, Usage]

    @property
    def by_role_and_agent(self) -> str:
        return " · ".join(in_one_line(usages) for usages in (self.roles, self.agents) if usages)


def spending(state: State) -> Spending:
    rows = [(task, progress.usage) for task, progress in state.rows()]
    undone = ("rolled back", state.undone)
    return Spending(
        roles=_added_up([*((task.role, usage) for task, usage in rows), undone]),
        tasks=_added_up([*((task.id, usage) for task, usage in rows), undone]),
        agents=_added_up(state.spent_by.items()),
    )


def _added_up(parts: Iterable[tuple[str, Usage]]) -> dict[str, Usage]:
    total: dict[str, Usage] = {}
    for name, usage in parts:
        if usage != Usage():
            total[str(name)] = total.get(str(name), Usage()) + usage
    return total


def figures(usage: Usage) -> str:
    """Money where it is known, and tokens."""
    parts = [f"${usage.cost_usd:.2f}"] if usage.cost_usd else []
    parts += [f"{usage.tokens} tokens"] if usage.tokens else []
    return ", ".join(parts)


def in_one_line(usages: Mapping[str, Usage]) -> str:
    return "; ".join(f"{name} {figures(usage)}" for name, usage in usages.items())
