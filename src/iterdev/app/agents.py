"""Which coding agents there are, and whether they can be used."""

from collections.abc import Mapping
from pathlib import Path

import msgspec

from iterdev.agents import registry
from iterdev.agents.contract import Probe
from iterdev.agents.registry import KNOWN_AGENTS
from iterdev.core.settings import AgentSettings
from iterdev.engine.repository import Repository
from iterdev.host.git.checkout import NotInRepository


class AgentView(Probe, frozen=True, kw_only=True):
    name: str
    kind: str
    usable: bool


def agents(folder: Path) -> list[AgentView]:
    """The agents of the configuration, if the folder is in a repository, then the others that iterdev knows."""
    try:
        repository = Repository(folder)
    except NotInRepository:
        return [agent_view({}, folder, name) for name in KNOWN_AGENTS]
    configured = repository.settings.agents
    names = [*configured, *(name for name in KNOWN_AGENTS if name not in configured)]
    return [agent_view(configured, repository.top, name) for name in names]


def agent_view(configured: Mapping[str, AgentSettings], top: Path, name: str) -> AgentView:
    probe = registry.make(name, configured, top).probe()
    usable = probe.installed and not probe.problem
    return AgentView(name=name, kind=registry.kind(name, configured), usable=usable, **msgspec.structs.asdict(probe))
