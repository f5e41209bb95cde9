"""What goes on outside of a session and matters to it: pauses that other runs learned of, and the day's spending."""

from collections.abc import Callable

from msgspec import Struct

from iterdev.core.limits import budget, providers
from iterdev.core.session.events import DaySpent, Event
from iterdev.core.session.state import State
from iterdev.host import clock
from iterdev.host.provider_pauses import Pauses
from iterdev.store.daily_spending import Daybook


class Outside(Struct, frozen=True, kw_only=True):
    pauses: Pauses
    daybook: Daybook
    now: Callable[[], float]

    def exchange(self, state: State) -> list[Event]:
        """Tells other runs which providers are paused; returns what is news to the session."""
        now = self.now()
        told = self.pauses.read(now)
        for pause in providers.unknown_to(told, state, now):
            self.pauses.write(pause)
        return [*providers.news(state, told, now), *self._day(state, now)]

    def _day(self, state: State, now: float) -> list[DaySpent]:
        if not budget.has_day(state.policy):
            return []
        began = clock.midnight(now)
        spent = self.daybook.spent_since(began)
        return [] if spent == state.today else [DaySpent(began, spent)]
