"""Which agents and which sandbox a session needs, and whether they can be had."""

import os
from collections.abc import Callable

from iterdev.agents.contract import Agent
from iterdev.agents.registry import UnavailableAgent, make, make_usable
from iterdev.core.session.state import State
from iterdev.core.settings import fallback_chain
from iterdev.engine.repository import Repository
from iterdev.host.sandbox import bubblewrap
from iterdev.host.sandbox.bubblewrap import Sandbox
from iterdev.teams.contract import Team


def configured_sandbox(repository: Repository) -> Sandbox | None:
    """The sandbox, if the user wants one; an error if it cannot be had."""
    return bubblewrap.build(repository.top, os.environ) if repository.settings.run.sandbox else None


def check_agents(repository: Repository, state: State, team: Team, agent: Callable[[str], Agent]) -> None:
    """Fails unless each agent that the session needs can be used, or one that takes over from it."""
    configured, top = repository.settings.agents, repository.top
    for wanted in needed_agents(repository, state, team):
        chain = fallback_chain(wanted, repository.settings.fallbacks)
        for name in chain:
            make(name, configured, top)
        if all(isinstance(agent(name), UnavailableAgent) for name in chain):
            make_usable(wanted, configured, top)


def needed_agents(repository: Repository, state: State, team: Team) -> list[str]:
    """The agents that the session will need, as far as can be told now."""
    roles = team.roles_needed(state)
    return sorted({state.session.agents.get(role) or repository.settings.agent_for(role) for role in roles})
