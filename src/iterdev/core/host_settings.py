"""The configuration of a host, which carries out attempts for engines on other machines."""

from collections.abc import Collection, Mapping

import msgspec
from msgspec import Struct

from iterdev.core.errors import UserError
from iterdev.core.settings import DEFAULT_KEY, AgentSettings, problems_of

FILE = "host.toml"


class HostAgentSettings(AgentSettings, frozen=True, kw_only=True):
    slots: int = 1
    """The most attempts with this agent that run at once on this host."""


class HostRepository(Struct, frozen=True, kw_only=True):
    belongings: str | None = None
    """A folder of this host with what `copy` and `link` of the project name, such as `.env`."""


class HostSettings(Struct, frozen=True, kw_only=True):
    name: str = ""
    """What this host is called; the name of the machine when empty."""
    key: str = DEFAULT_KEY
    """The file with the key that engines seal their orders with."""
    profile: str = "default"
    """The profile of Temporal's own configuration file."""
    agents: Mapping[str, HostAgentSettings] = {}
    """The agents that this host offers, as tables."""
    repositories: Mapping[str, HostRepository] = {}
    """The git remotes that this host works on, as tables; orders for others are refused."""


def read(document: Mapping[str, object], agents: Collection[str], *, file: str = FILE) -> HostSettings:
    """The settings of a parsed document; every problem is named. `agents` are those that need no table."""
    if problems := problems_of(document, HostSettings, roles=(), agents=agents):
        raise UserError(f"{file}: {'; '.join(problems)}", hint=f"edit {file}")
    return msgspec.convert(document, HostSettings)
