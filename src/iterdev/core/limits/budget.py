"""Budgets: what a session, a task and a day have spent and may spend, checked before every request to an agent."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.formatting import counted
from iterdev.core.policy import Policy
from iterdev.core.results import NO_USAGE, Usage
from iterdev.core.types import TaskId


class DaySpent(Struct, frozen=True, tag=True):
    """What all sessions of the repository have spent on the day that began then."""

    began: float
    usage: Usage


class Spending(Struct, frozen=True, kw_only=True):
    total: Usage = Usage()
    by_agent: Mapping[str, Usage] = {}
    today: Usage = Usage()
    """Of all sessions of the repository, as far as the journal knows."""


class Allowance(Struct, frozen=True, kw_only=True):
    """What an attempt may spend if nobody can be asked, by the budgets as they were when it began; None is no limit."""

    usd: float | None = None
    tokens: int | None = None

    @property
    def is_limited(self) -> bool:
        return self.usd is not None or self.tokens is not None

    def objection(self, spent: Usage) -> str:
        return _used_up(" for this attempt", self.usd, self.tokens, spent)


def spend(part: Spending, agent: str, usage: Usage) -> Spending:
    if usage == NO_USAGE:
        return part
    by_agent = {**part.by_agent, agent: part.by_agent.get(agent, Usage()) + usage}
    return replace(part, total=part.total + usage, by_agent=by_agent)


def evolve(part: Spending, event: DaySpent, _: float = 0) -> Spending:
    return replace(part, today=event.usage)


def figures(usage: Usage) -> str:
    """Money where it is known, and tokens."""
    parts = [f"${usage.cost_usd:.2f}"] if usage.cost_usd else []
    parts += [counted(usage.tokens, "token")] if usage.tokens else []
    return ", ".join(parts)


def in_one_line(usages: Mapping[str, Usage]) -> str:
    return "; ".join(f"{name} {figures(usage)}" for name, usage in usages.items())


def over_budget(policy: Policy, spending: Spending, spent: Mapping[TaskId, Usage]) -> dict[TaskId, str]:
    """The tasks that no agent may be asked to do, each with a sentence about the budget that is used up."""
    if why := _for_all(policy, spending, Usage()):
        return dict.fromkeys(spent, why)
    if policy.task_budget_usd is None and policy.task_budget_tokens is None:
        return {}
    return {task: why for task, usage in spent.items() if (why := _for_one(policy, task, usage))}


def objection(policy: Policy, spending: Spending, task: TaskId, spent: Usage, more: Usage) -> str:
    """Why a running attempt, which has spent `more`, may not ask its agent again; empty if it may."""
    return _for_all(policy, spending, more) or _for_one(policy, task, spent + more)


def allowance(policy: Policy, spending: Spending, spent: Usage) -> Allowance:
    """What is left of the budgets for a task that has spent this much."""
    before = (("", spending.total), ("day_", spending.today), ("task_", spent))
    money = [(getattr(policy, f"{span}budget_usd"), used.cost_usd) for span, used in before]
    tokens = [(getattr(policy, f"{span}budget_tokens"), used.tokens) for span, used in before]
    return Allowance(
        usd=min((most - used for most, used in money if most is not None), default=None),
        tokens=min((most - used for most, used in tokens if most is not None), default=None),
    )


def has_day_budget(policy: Policy) -> bool:
    return policy.day_budget_usd is not None or policy.day_budget_tokens is not None


def _for_all(policy: Policy, spending: Spending, more: Usage) -> str:
    return _used_up("", policy.budget_usd, policy.budget_tokens, spending.total + more) or _used_up(
        " for one day", policy.day_budget_usd, policy.day_budget_tokens, spending.today + more
    )


def _for_one(policy: Policy, task: TaskId, spent: Usage) -> str:
    return _used_up(f" for {task}", policy.task_budget_usd, policy.task_budget_tokens, spent)


def _used_up(what: str, usd: float | None, tokens: int | None, spent: Usage) -> str:
    if usd is not None and spent.cost_usd >= usd:
        return f"the budget of ${usd:g}{what} is used up (${spent.cost_usd:.2f} spent)"
    if tokens is not None and spent.tokens >= tokens:
        return f"the budget of {tokens} tokens{what} is used up ({spent.tokens} used)"
    return ""
