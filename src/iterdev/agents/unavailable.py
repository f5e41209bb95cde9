"""An agent that is not there: whoever talks to it learns why, in time to ask another one."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from iterdev.agents.contract import AgentEvent, AgentFailure, Assignment, Conversation, Probe, Reply, Spawn, TroubleKind


class AbsentAgent(Struct, frozen=True):
    name: str
    problem: str

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def probe(self) -> Probe:
        return Probe(installed=False, problem=self.problem)

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        del environment
        return ()

    @asynccontextmanager
    async def open(
        self, assignment: Assignment, *, spawn: Spawn, watch: Callable[[AgentEvent], None]
    ) -> AsyncIterator[Conversation]:
        del assignment, spawn, watch
        yield Silence(AgentFailure(kind=TroubleKind.not_installed, message=self.problem))


class Silence(Struct, frozen=True):
    """A conversation with nobody."""

    trouble: AgentFailure

    async def send(self, prompt: str) -> Reply:
        del prompt
        return self.trouble
