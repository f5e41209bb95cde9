"""What a session has cost: in all, over time, by role, by agent and by task, and how much of its budgets is used."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from iterdev.core.results import Usage
from iterdev.core.session.state import State
from iterdev.core.settings import BUDGETS
from iterdev.core.views.history import History, Spent, spending
from iterdev.core.views.session import SpendingView, spending_view


class BudgetView(Struct, frozen=True):
    name: str
    used: float
    limit: float
    is_money: bool


class CostView(Struct, frozen=True, kw_only=True):
    total: Usage
    today: Usage
    """Of all sessions of the repository, when this session last looked."""
    budgets: tuple[BudgetView, ...]
    spending: SpendingView
    tasks: Mapping[str, Usage]
    """The largest first."""
    over_time: tuple[Spent, ...]


def cost_view(state: State, history: History) -> CostView:
    found = spending_view(state)
    largest = sorted(found.tasks.items(), key=lambda item: (item[1].cost_usd, item[1].tokens), reverse=True)
    return CostView(
        total=state.spending.total,
        today=state.spending.today,
        budgets=tuple(_budgets(state)),
        spending=found,
        tasks=dict(largest),
        over_time=spending(history),
    )


def _budgets(state: State) -> Iterator[BudgetView]:
    for name in BUDGETS:
        limit = getattr(state.policy, name)
        if limit is None or name.startswith("task_"):
            continue
        usage, is_money = (
            state.spending.today if name.startswith("day_") else state.spending.total,
            name.endswith("usd"),
        )
        span = "today" if name.startswith("day_") else "this session"
        yield BudgetView(span, usage.cost_usd if is_money else usage.tokens, limit, is_money)
