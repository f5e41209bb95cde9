"""An agent that is not installed: every turn fails with the reason, so that another agent can take over."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from iterdev.agents.common.conversation import FailedConversation
from iterdev.agents.contract import AgentFailure, Assignment, Conversation, FailureKind, Probe, Spawn, Watch


class UnavailableAgent(Struct, frozen=True):
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
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[Conversation]:
        del assignment, spawn, watch
        yield FailedConversation(AgentFailure(kind=FailureKind.not_installed, message=self.problem))
