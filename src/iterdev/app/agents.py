"""Which coding agents there are, and whether they can be used."""

import msgspec

from iterdev.agents import registry
from iterdev.agents.contract import Probe
from iterdev.agents.registry import KNOWN_AGENTS
from iterdev.engine.repository import Repository


class AgentView(Probe, frozen=True, kw_only=True):
    name: str
    kind: str
    usable: bool


def agents(repository: Repository) -> list[AgentView]:
    """The agents of the configuration, then the others that iterdev knows."""
    configured = repository.settings.agents
    names = [*configured, *(name for name in KNOWN_AGENTS if name not in configured)]
    return [agent_view(repository, name) for name in names]


def agent_view(repository: Repository, name: str) -> AgentView:
    configured = repository.settings.agents
    probe = registry.make(name, configured, repository.top).probe()
    usable = probe.installed and not probe.problem
    return AgentView(name=name, kind=registry.kind(name, configured), usable=usable, **msgspec.structs.asdict(probe))
