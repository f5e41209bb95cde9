"""What a session has spent: in all, by agent, and today together with the other sessions of the repository."""

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from iterdev.core.results import Usage


class DaySpent(Struct, frozen=True, tag=True):
    """What all sessions of the repository have spent on the day that began then."""

    began: float
    usage: Usage


class Spending(Struct, frozen=True, kw_only=True):
    total: Usage = Usage()
    by_agent: Mapping[str, Usage] = {}
    today: Usage = Usage()
    """Of all sessions of the repository, as far as the journal knows."""


def spend(part: Spending, agent: str, usage: Usage) -> Spending:
    if usage == Usage():
        return part
    by_agent = {**part.by_agent, agent: part.by_agent.get(agent, Usage()) + usage}
    return msgspec.structs.replace(part, total=part.total + usage, by_agent=by_agent)


def evolve(part: Spending, event: DaySpent, _: float = 0) -> Spending:
    return msgspec.structs.replace(part, today=event.usage)


def figures(usage: Usage) -> str:
    """Money where it is known, and tokens."""
    parts = [f"${usage.cost_usd:.2f}"] if usage.cost_usd else []
    parts += [f"{usage.tokens} tokens"] if usage.tokens else []
    return ", ".join(parts)


def in_one_line(usages: Mapping[str, Usage]) -> str:
    return "; ".join(f"{name} {figures(usage)}" for name, usage in usages.items())
