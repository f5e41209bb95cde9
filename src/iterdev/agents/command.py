"""Any program as an agent: interface.md 3, to the letter."""

import os
import shlex

from iterdev.agents.common.conversation import CommandConversation
from iterdev.agents.common.environment import absolute, find_program, is_file
from iterdev.agents.common.versions import not_found
from iterdev.agents.contract import AgentWithoutLogin, Assignment, Probe, Spawn, Watch


class CommandAgent(AgentWithoutLogin, frozen=True):
    command: tuple[str, ...]
    root: str
    """The user's checkout, to which paths in the command are relative."""

    def probe(self) -> Probe:
        setting = f'"command" of [agents.{self.name}] in iterdev.toml'
        program = self.command[0]
        if find_program(program, (self.root,), os.environ):
            return Probe(installed=True)
        if is_file(absolute(self.root, program)):
            problem = f'The program "{program}" of the agent "{self.name}" is not executable'
            return Probe(installed=False, problem=problem, hint=f"chmod +x {shlex.quote(program)}")
        return not_found(program, self.name, f"install {program}, or fix {setting}")

    def open(self, assignment: Assignment, *, spawn: Spawn, watch: Watch) -> CommandConversation:
        return CommandConversation(self.name, self.command, assignment, root=self.root, spawn=spawn, watch=watch)
