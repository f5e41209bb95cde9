"""Money and tokens: what a session, a task and a day may cost, looked at before every request to an agent."""

from collections.abc import Iterable

import msgspec

from iterdev.core.results import Usage
from iterdev.core.session.events import Policy
from iterdev.core.session.state import State
from iterdev.core.types import TaskId


def unpaid(state: State, tasks: Iterable[TaskId]) -> dict[TaskId, str]:
    """The tasks that no agent may be asked to do, each with the budget that is used up, in words."""
    if why := _for_all(state, Usage()):
        return dict.fromkeys(tasks, why)
    if state.policy.task_budget_usd is None and state.policy.task_budget_tokens is None:
        return {}
    return {task: why for task in tasks if (why := _for_one(state, task, Usage()))}


def objection(state: State, task: TaskId, more: Usage) -> str:
    """Why a running attempt, which has spent this much, may not ask its agent again; nothing if it may."""
    return _for_all(state, more) or _for_one(state, task, more)


def has_day(policy: Policy) -> bool:
    return policy.day_budget_usd is not None or policy.day_budget_tokens is not None


def lifted(policy: Policy) -> Policy:
    """The rules without any budget."""
    names = (name for name in policy.__struct_fields__ if "budget" in name)
    return msgspec.structs.replace(policy, **dict.fromkeys(names))


def _for_all(state: State, more: Usage) -> str:
    policy = state.policy
    return _used_up("", policy.budget_usd, policy.budget_tokens, state.spent + more) or _used_up(
        " for one day", policy.day_budget_usd, policy.day_budget_tokens, state.today + more
    )


def _for_one(state: State, task: TaskId, more: Usage) -> str:
    policy = state.policy
    spent = state.progress[task].usage + more
    return _used_up(f" for {task}", policy.task_budget_usd, policy.task_budget_tokens, spent)


def _used_up(what: str, usd: float | None, tokens: int | None, spent: Usage) -> str:
    if usd is not None and spent.cost_usd >= usd:
        return f"the budget of ${usd:g}{what} is used up (${spent.cost_usd:.2f} spent)"
    if tokens is not None and spent.tokens >= tokens:
        return f"the budget of {tokens} tokens{what} is used up ({spent.tokens} used)"
    return ""
