"""Limits that sessions share: provider pauses of all runs on this machine, and the day's spending in the repository."""

from collections.abc import Callable

from msgspec import Struct

from iterdev.core.limits import budget, providers
from iterdev.core.limits.spending import DaySpent
from iterdev.core.session.events import Event
from iterdev.core.session.state import State
from iterdev.host import clock
from iterdev.host.provider_pauses import Pauses
from iterdev.store.daily_spending import DailySpending


class SharedLimits(Struct, frozen=True, kw_only=True):
    pauses: Pauses
    spending: DailySpending
    now: Callable[[], float]

    def exchange(self, state: State) -> list[Event]:
        """Tells other runs which providers are paused; returns what is news to the session."""
        now = self.now()
        told = self.pauses.read(now)
        for pause in providers.unshared_pauses(state.providers, told, now):
            self.pauses.write(pause)
        learned = providers.shared_pauses(state.providers, state.agents, state.policy, told, now)
        return [*learned, *self._day(state, now)]

    def _day(self, state: State, now: float) -> list[DaySpent]:
        if not budget.has_day_budget(state.policy):
            return []
        began = clock.midnight(now)
        spent = self.spending.spent_since(began)
        return [] if spent == state.spending.today else [DaySpent(began, spent)]
