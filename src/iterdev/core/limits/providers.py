"""Providers of agents: which agent takes a task, and how long a provider that refuses is paused.

A limit is a property of the provider, not of the attempt that ran into it: every task that needs the provider waits.
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.draft import without
from iterdev.core.limits.clock_changes import ClockChanged, moved_end
from iterdev.core.policy import Policy
from iterdev.core.settings import fallback_chain
from iterdev.core.types import Role, TaskId

KNOWN_PROVIDERS: Mapping[str, str] = {"claude": "anthropic", "codex": "openai", "gemini": "google", "qwen": "qwen"}
"""Agents whose provider is known; any other agent is its own."""


class ProviderPaused(Struct, frozen=True, tag=True):
    provider: str
    until: float
    why: str
    guesses: int = 0
    """How often in a row the provider named no time."""


class Providers(Struct, frozen=True, kw_only=True):
    pauses: Mapping[str, ProviderPaused] = {}
    """By provider; one that is over stays until the provider has answered."""
    unusable: Mapping[str, str] = {}
    """Agents that cannot be used until something changes on this machine, and why."""


class ProviderAnswered(Struct, frozen=True, tag=True):
    provider: str


class AgentReplaced(Struct, frozen=True, kw_only=True, tag=True):
    task: TaskId
    agent: str
    successor: str
    error: str
    for_every_task: bool
    """The agent is not used for any task until an engine starts again."""


ProviderEvent = ProviderPaused | ProviderAnswered | AgentReplaced


def evolve(part: Providers, event: ProviderEvent | ClockChanged, _: float = 0) -> Providers:
    match event:
        case ProviderPaused(provider):
            return replace(part, pauses={**part.pauses, provider: event})
        case ProviderAnswered(provider):
            return replace(part, pauses=without(part.pauses, provider))
        case AgentReplaced(agent=agent, error=error, for_every_task=for_every_task):
            return replace(part, unusable={**part.unusable, agent: error}) if for_every_task else part
        case ClockChanged():
            moved = {name: replace(one, until=moved_end(one.until, event)) for name, one in part.pauses.items()}
            return replace(part, pauses=moved)


class Agents(Struct, frozen=True, kw_only=True):
    """The agents that a session may use: by role, with those that take over, and their providers."""

    by_role: Mapping[Role, str]
    fallbacks: Mapping[str, str] = {}
    providers: Mapping[str, str] = {}

    def provider_of(self, agent: str) -> str:
        return self.providers.get(agent) or KNOWN_PROVIDERS.get(agent, agent)

    def chain(self, role: Role, named: str = "") -> list[str]:
        """The agent that a task names, or else that of its role, and those that take over, in their order."""
        return fallback_chain(named or self.by_role.get(role, ""), self.fallbacks)

    def clients(self, provider: str) -> list[str]:
        """The agents of the session that have this provider."""
        agents = dict.fromkeys(agent for role in self.by_role for agent in self.chain(role))
        return [agent for agent in agents if self.provider_of(agent) == provider]


class Choice(Struct, frozen=True):
    agent: str
    not_before: float = 0


def choose(part: Providers, agents: Agents, chain: Sequence[str], replaced: Sequence[str], now: float) -> Choice:
    """The first agent of a chain whose provider answers, or the one with the shortest wait."""
    left = remaining(part, chain, replaced) or chain[-1:]
    waits = {agent: paused_until(part, agents, agent) for agent in left}
    soonest = min(left, key=lambda agent: max(waits[agent], now))
    return Choice(soonest, waits[soonest])


def remaining(part: Providers, chain: Iterable[str], replaced: Sequence[str]) -> list[str]:
    """The agents of a chain that can still be tried."""
    return [agent for agent in chain if agent not in replaced and agent not in part.unusable]


def paused_until(part: Providers, agents: Agents, agent: str) -> float:
    pause = part.pauses.get(agents.provider_of(agent))
    return pause.until if pause else 0


def pause(
    part: Providers, policy: Policy, provider: str, *, error: str, reset_at: float | None, at: float
) -> ProviderPaused:
    """How long a provider is paused: until the time that it named, or longer from one guess to the next."""
    before = part.pauses.get(provider)
    in_force = before if before and before.until > at else None
    if reset_at is not None and reset_at > at:
        named = ProviderPaused(provider, min(reset_at, at + policy.longest_pause), error)
        return in_force if in_force and not in_force.guesses and in_force.until > named.until else named
    if in_force:
        # Another attempt that was under way ran into the same limit.
        return in_force
    guesses = (before.guesses if before else 0) + 1
    seconds = min(policy.first_pause * 2.0 ** (guesses - 1), policy.longest_guess)
    return ProviderPaused(provider, at + seconds, error, guesses)


def in_force(part: Providers, now: float) -> dict[str, ProviderPaused]:
    return {provider: pause for provider, pause in part.pauses.items() if pause.until > now}


def shared_pauses(
    part: Providers, agents: Agents, policy: Policy, shared: Iterable[ProviderPaused], now: float
) -> list[ProviderPaused]:
    """The pauses recorded by other sessions on this machine that concern this session and are longer than its own."""
    mine = {agents.provider_of(agent) for role in agents.by_role for agent in agents.chain(role)}
    return [
        pause
        for pause in shared
        if pause.provider in mine
        and now < pause.until <= now + policy.longest_pause
        and ((known := part.pauses.get(pause.provider)) is None or pause.until > known.until)
    ]


def unshared_pauses(part: Providers, shared: Iterable[ProviderPaused], now: float) -> list[ProviderPaused]:
    """The pauses of this session that other sessions on this machine do not know."""
    known = {pause.provider: pause.until for pause in shared}
    return [
        replace(pause, guesses=0)
        for provider, pause in in_force(part, now).items()
        if pause.until > known.get(provider, 0)
    ]
