"""Any program as an agent: interface.md 3, to the letter."""

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from iterdev.agents.common.conversation import CommandConversation
from iterdev.agents.common.environment import find_program
from iterdev.agents.common.paths import absolute, is_file
from iterdev.agents.contract import Assignment, Conversation, Probe, Spawn, Watch


class CommandAgent(msgspec.Struct, frozen=True):
    name: str
    command: tuple[str, ...]
    root: str
    """The user's checkout, to which paths in the command are relative."""

    @property
    def needs(self) -> tuple[str, ...]:
        return ()

    def probe(self) -> Probe:
        setting = f'"command" of [agents.{self.name}] in iterdev.toml'
        if not self.command:
            problem = f'The agent "{self.name}" has an empty command'
            return Probe(installed=False, problem=problem, hint=f"name a program in {setting}")
        program = self.command[0]
        if find_program(program, (self.root,), os.environ):
            return Probe(installed=True)
        if is_file(absolute(self.root, program)):
            problem = f'The program "{program}" of the agent "{self.name}" is not executable'
            return Probe(installed=False, problem=problem, hint=f"chmod +x {program}")
        problem = f'The program "{program}" of the agent "{self.name}" was not found'
        return Probe(installed=False, problem=problem, hint=f"install {program}, or fix {setting}")

    def folders(self, environment: Mapping[str, str]) -> Sequence[str]:
        del environment
        return ()

    @asynccontextmanager
    async def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> AsyncIterator[Conversation]:
        conversation = CommandConversation(
            self.name, self.command, assignment, root=self.root, spawn=spawn, watch=watch
        )
        try:
            yield conversation
        finally:
            await conversation.close()
