"""Which agents and which sandbox a session needs, and whether they can be had."""

import os
from collections.abc import Callable

from iterdev.agents.contract import Agent
from iterdev.agents.registry import make, make_usable
from iterdev.agents.unavailable import UnavailableAgent
from iterdev.core.session.state import State
from iterdev.core.settings import in_turn
from iterdev.core.types import Role
from iterdev.engine.repository import Repository
from iterdev.host.sandbox import bubblewrap
from iterdev.host.sandbox.bubblewrap import Sandbox
from iterdev.teams.development.requirement_analysis import TEAM_OF


def sandboxed(repository: Repository) -> Sandbox | None:
    """The sandbox, if the user wants one; an error if it cannot be had."""
    return bubblewrap.build(repository.top, os.environ) if repository.settings.run.sandbox else None


def check_agents(repository: Repository, state: State, agent: Callable[[str], Agent]) -> None:
    """Fails unless each agent that the session needs can be used, or one that takes over from it."""
    configured, top = repository.settings.agents, repository.top
    for wanted in wanted_agents(repository, state):
        names_in_turn = in_turn(wanted, repository.settings.fallbacks)
        for name in names_in_turn:
            make(name, configured, top)
        if all(isinstance(agent(name), UnavailableAgent) for name in names_in_turn):
            make_usable(wanted, configured, top)


def wanted_agents(repository: Repository, state: State) -> list[str]:
    """The agents that the session will need, as far as can be told now."""
    if state.tasks:
        roles = {task.role for task in state.tasks.values()} - {Role.gc_controller}
    else:
        roles = set(TEAM_OF[state.pipeline or state.session.analysis.pipeline])
    return sorted({state.session.agents.get(role) or repository.settings.agent_for(role) for role in roles})
