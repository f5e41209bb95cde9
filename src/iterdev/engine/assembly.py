"""The agents and the sandbox that a session needs, and whether they can be used."""

import os
from collections.abc import Callable

from iterdev.agents import registry
from iterdev.agents.contract import Agent, UnavailableAgent
from iterdev.core.session.state import State
from iterdev.core.settings import fallback_chain
from iterdev.engine.repository import Repository
from iterdev.host.sandbox import bubblewrap
from iterdev.teams.contract import Team


def configured_sandbox(repository: Repository) -> bubblewrap.Sandbox | None:
    """The sandbox, if the configuration asks for one; an error if it cannot be used."""
    return bubblewrap.build(repository.top, os.environ) if repository.settings.run.sandbox else None


def check_agents(repository: Repository, state: State, team: Team, agent: Callable[[str], Agent]) -> None:
    """Fails unless each agent that the session needs, or one that takes over from it, can be used."""
    settings = repository.settings
    needed = {state.session.agents.get(role) or settings.agent_for(role) for role in team.roles_needed(state)}
    for wanted in sorted(needed):
        chain = fallback_chain(wanted, settings.fallbacks)
        for name in chain:
            registry.make(name, settings.agents, repository.top)
        if all(isinstance(agent(name), UnavailableAgent) for name in chain):
            registry.make_usable(wanted, settings.agents, repository.top)
