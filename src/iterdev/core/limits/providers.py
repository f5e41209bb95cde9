"""Who answers an agent, which agent takes a task, and how long a provider that has had enough is left alone.

A limit is a property of the provider, not of the attempt that ran into it: everybody who needs that provider waits.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from iterdev.core.limits.agent_failures import Reaction, reaction
from iterdev.core.session.events import Failed, Limited, Policy, ProviderPaused
from iterdev.core.session.state import Pause, State
from iterdev.core.settings import in_turn
from iterdev.core.types import Role, TaskId

NAMED: Mapping[str, str] = {"claude": "anthropic", "codex": "openai", "gemini": "google", "qwen": "qwen"}
"""Agents whose provider is known; any other agent is its own."""

FIRST_GUESS = 60.0
LAST_GUESS = 900.0
"""Seconds that a provider is left alone when it does not say how long: doubled from the first to the last."""
LONGEST = 31 * 86400.0
"""No provider asks for more patience than that; a clock may be wrong."""


class Choice(Struct, frozen=True):
    """The agent that takes a task, and the time from which its provider answers."""

    agent: str
    not_before: float = 0


class Change(Struct, frozen=True, kw_only=True):
    """An agent that is given up, and the one to try next."""

    agent: str
    successor: str
    for_every_task: bool


def provider_of(policy: Policy, agent: str) -> str:
    return policy.providers.get(agent) or NAMED.get(agent, agent)


def key_of(command: Sequence[str]) -> str:
    """The provider of a command: the same in every repository, and nothing in it that the command keeps secret."""
    return f"command-{hashlib.sha256(json.dumps(list(command)).encode()).hexdigest()[:12]}"


def chain(state: State, role: Role) -> list[str]:
    """The agent of a role, and those that take over, in their order."""
    agent = state.session.agents.get(role) or state.policy.agents.get(role, "")
    return in_turn(agent, state.policy.fallbacks)


def choices(state: State, tasks: Iterable[TaskId], now: float) -> dict[TaskId, Choice]:
    """The agent for each task; tasks that differ in nothing that matters here are looked at once."""
    known: dict[tuple[Role, tuple[str, ...]], Choice] = {}
    chosen: dict[TaskId, Choice] = {}
    for task in tasks:
        case = state.tasks[task].role, state.progress[task].given_up
        if case not in known:
            known[case] = _choice(state, *case, now)
        chosen[task] = known[case]
    return chosen


def _choice(state: State, role: Role, given_up: tuple[str, ...], now: float) -> Choice:
    """The first agent whose provider answers, or the one that is waited for the shortest time."""
    agents = chain(state, role)
    left = _left(state, agents, given_up) or agents[-1:]
    waits = {agent: paused_until(state, agent) for agent in left}
    ready = next((agent for agent, until in waits.items() if until <= now), None)
    soonest = ready or min(waits, key=waits.__getitem__)
    return Choice(soonest, waits[soonest])


def _left(state: State, agents: Iterable[str], given_up: Sequence[str]) -> list[str]:
    return [agent for agent in agents if agent not in given_up and agent not in state.unusable]


def paused_until(state: State, agent: str) -> float:
    pause = state.pauses.get(provider_of(state.policy, agent))
    return pause.until if pause else 0


def change_of_agent(state: State, task: TaskId, failed: Failed) -> Change | None:
    """Who is tried next after a trouble that another agent need not have."""
    if failed.kind is None:
        return None
    match reaction(failed.kind):
        case Reaction.change_agent:
            for_every_task = True
        case Reaction.change_here | Reaction.insist:
            for_every_task = False
        case _:
            return None
    agent = state.progress[task].agent
    left = others(state, task, agent)
    return Change(agent=agent, successor=left[0], for_every_task=for_every_task) if left else None


def others(state: State, task: TaskId, agent: str) -> list[str]:
    """The agents that can still be tried for a task when this one cannot do it."""
    return _left(state, chain(state, state.tasks[task].role), (*state.progress[task].given_up, agent))


def pause(before: Pause | None, limited: Limited, at: float) -> Pause:
    """How long a provider is left alone: until the time that it named, or longer from one guess to the next."""
    in_force = before if before and before.until > at else None
    if limited.reset_at is not None and limited.reset_at > at:
        told = Pause(until=min(limited.reset_at, at + LONGEST), why=limited.error)
        return in_force if in_force and not in_force.guesses and in_force.until > told.until else told
    if in_force:
        # Another attempt that was under way ran into the same limit.
        return in_force
    guesses = (before.guesses if before else 0) + 1
    seconds = min(FIRST_GUESS * 2.0 ** (guesses - 1), LAST_GUESS)
    return Pause(until=at + seconds, why=limited.error, guesses=guesses)


def in_force(state: State, now: float) -> dict[str, Pause]:
    return {provider: pause for provider, pause in state.pauses.items() if pause.until > now}


def news(state: State, told: Iterable[ProviderPaused], now: float) -> list[ProviderPaused]:
    """What others on this machine learned about providers of this session, and this session does not know."""
    mine = {provider_of(state.policy, agent) for role in state.policy.agents for agent in chain(state, role)}
    return [
        pause
        for pause in told
        if pause.provider in mine and _is_longer(pause.until, state.pauses.get(pause.provider), now)
    ]


def _is_longer(until: float, known: Pause | None, now: float) -> bool:
    return now < until <= now + LONGEST and (known is None or until > known.until)


def unknown_to(told: Iterable[ProviderPaused], state: State, now: float) -> list[ProviderPaused]:
    """What this session knows about providers, and others on this machine were not told."""
    known = {pause.provider: pause.until for pause in told}
    return [
        ProviderPaused(provider, pause.until, pause.why)
        for provider, pause in in_force(state, now).items()
        if pause.until > known.get(provider, 0)
    ]


def clients(state: State, provider: str) -> list[str]:
    """The agents of a session that a provider answers."""
    agents = dict.fromkeys(agent for role in state.policy.agents for agent in chain(state, role))
    return [agent for agent in agents if provider_of(state.policy, agent) == provider]
