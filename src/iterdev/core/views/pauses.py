"""Providers that have reached a limit and are not asked for a while."""

from msgspec import Struct

from iterdev.core.ids import moment
from iterdev.core.limits import providers
from iterdev.core.session.state import State


class PauseView(Struct, frozen=True, kw_only=True):
    provider: str
    agents: tuple[str, ...]
    ends_at: float
    why: str

    @property
    def until(self) -> str:
        return moment(self.ends_at)


def pauses(state: State) -> tuple[PauseView, ...]:
    """The pauses that were in force when something last happened."""
    return tuple(
        PauseView(provider=provider, agents=tuple(state.agents.clients(provider)), ends_at=pause.until, why=pause.why)
        for provider, pause in providers.in_force(state.providers, state.updated_at).items()
    )


def pause_text(pause: PauseView) -> str:
    return f"the provider of {', '.join(pause.agents)} is paused until {pause.until}: {pause.why}"
