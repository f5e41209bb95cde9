"""The agent that plays a script, successes and failures alike: for the demo, for tests, and to reproduce a bug.

It is a command agent whose command is `player.py`; it adds what a plain command has no words for: a provider's
limit and a permission that nobody is there to give.
"""

import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from iterdev.agents.common.conversation import CommandConversation
from iterdev.agents.contract import (
    AgentEvent,
    AgentFailure,
    Assignment,
    Conversation,
    PermissionAsked,
    Probe,
    Reply,
    Said,
    Spawn,
    TroubleKind,
    Watch,
)
from iterdev.agents.scripted import player


class ScriptedAgent(msgspec.Struct, frozen=True):
    name: str
    script: str
    """Path of a script in the language of docs/scripted-agent.md."""

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def probe(self) -> Probe:
        try:
            player.load(self.script)
        except player.BadScript as error:
            problem = f'The agent "{self.name}" has a bad script: {error}'
            return Probe(installed=True, problem=problem, hint=f"mend {self.script}, see docs/scripted-agent.md")
        return Probe(installed=True)

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        del environment
        return ()

    @asynccontextmanager
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[Conversation]:
        ear = MarkerEar(self.name, watch)
        talk = CommandConversation(
            self.name, self._command(), assignment, root=assignment.workspace, spawn=spawn, watch=ear.hear
        )
        try:
            yield ScriptedConversation(talk, ear)
        finally:
            await talk.close()

    def _command(self) -> tuple[str, ...]:
        return (sys.executable, "-I", "-S", player.__file__, str(Path(self.script).absolute()))


class ScriptedConversation:
    def __init__(self, talk: Conversation, ear: "MarkerEar") -> None:
        self._talk = talk
        self._ear = ear

    async def send(self, prompt: str) -> Reply:
        self._ear.forget()
        reply = await self._talk.send(prompt)
        return self._ear.trouble or reply


class MarkerEar:
    """Takes the player's markers out of what it says, and remembers the trouble that the last one means."""

    def __init__(self, name: str, watch: Watch) -> None:
        self.trouble: AgentFailure | None = None
        self._name = name
        self._watch = watch

    def forget(self) -> None:
        self.trouble = None

    def hear(self, event: AgentEvent) -> None:
        match marker_in(event):
            case None:
                self._watch(event)
            case Marker(permission=str(what)):
                self._watch(PermissionAsked(what))
                message = f'The agent "{self._name}" asked for a permission that nobody can give: {what}'
                self.trouble = AgentFailure(kind=TroubleKind.permission, message=message)
            case Marker(trouble=TroubleKind() as kind):
                self.trouble = AgentFailure(kind=kind, message=f'The agent "{self._name}" has a trouble: {kind}')
            case Marker(reset_at=reset_at):
                message = f'The provider of the agent "{self._name}" has reached its limit'
                self.trouble = AgentFailure(kind=TroubleKind.limited, message=message, reset_at=reset_at)


class Marker(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    permission: str | None = None
    reset_at: float | None = None
    trouble: TroubleKind | None = None


def marker_in(event: AgentEvent) -> Marker | None:
    if not isinstance(event, Said) or not event.text.startswith(player.MARKER):
        return None
    try:
        return msgspec.json.decode(event.text.removeprefix(player.MARKER), type=Marker)
    except msgspec.DecodeError:
        return None
