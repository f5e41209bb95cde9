"""The agent that plays a script, successes and failures alike: for the demo, for tests, and to reproduce a bug.

The steps of a turn are played by `player.py`, as a command agent. Failures of a provider, which a command cannot
report, are added here.
"""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

import msgspec

from iterdev.agents import contract
from iterdev.agents.common.conversation import CommandConversation
from iterdev.agents.contract import Assignment, Reply, Spawn, Watch
from iterdev.agents.scripted import player
from iterdev.agents.scripted.script import Script, Step, completed, load
from iterdev.core.errors import UserError
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.processes import Exit


class ScriptedAgent(contract.AgentWithoutLogin, frozen=True):
    script: str
    """The path of a script in the language of docs/scripted-agent.md."""
    now: Callable[[], float] = time.time

    def probe(self) -> contract.Probe:
        try:
            load(Path(self.script), "agent")
        except UserError as error:
            return contract.Probe(installed=True, problem=error.message, hint=error.hint or "")
        return contract.Probe(installed=True)

    def open(
        self, assignment: Assignment, *, spawn: Spawn, watch: Watch
    ) -> "ScriptedConversation | nullcontext[contract.FailedConversation]":
        try:
            script = load(Path(self.script), "agent")
        except UserError as error:
            return nullcontext(contract.FailedConversation.of(self.name, error))
        return ScriptedConversation(self, script, assignment, spawn=spawn, watch=watch)


class ScriptedConversation(CommandConversation):
    def __init__(
        self, agent: ScriptedAgent, script: Script, assignment: Assignment, *, spawn: Spawn, watch: Watch
    ) -> None:
        super().__init__(agent.name, (), assignment, root=assignment.workspace, spawn=spawn, watch=watch)
        self._script, self._now = script, agent.now
        self._last = Step()

    async def _run(self, text: bytes) -> Reply:
        work = self._assignment
        choice = self._script.choose(text.decode(), task=work.task, role=work.role, attempt=self._attempt)
        if choice is None:
            place = f'task "{work.task}", role "{work.role}", attempt {self._attempt}'
            return self._failure(FailureKind.crashed, f"has no rule in its script for {place}")
        rule, placeholders = choice
        steps = self._until_end([step.filled(placeholders | {"cwd": work.workspace}) for step in rule.steps])
        self._last = steps[-1]
        self._command = (sys.executable, "-I", "-S", player.__file__, str(exit_code(self._last)))
        data = msgspec.json.encode([played(step, work.task) for step in steps])
        return await super()._run(b"%d\n%s%s" % (len(data), data, text))

    def _until_end(self, steps: Sequence[Step]) -> list[Step]:
        """The steps of this turn, up to the first that ends it; a failure that is over has no effect any more."""
        played_steps: list[Step] = []
        for step in steps:
            over = step.fail and step.fail.times is not None and self._attempt > step.fail.times
            played_steps.append(msgspec.structs.replace(step, fail=None) if over else step)
            if played_steps[-1].fail or step.permission or step.exit is not None:
                break
        return played_steps

    def _reply_to(self, ended: Exit, stdout: bytes | bytearray, stderr: bytes | bytearray) -> Reply:
        reply = super()._reply_to(ended, stdout, stderr)
        permission, fail = self._last.permission, self._last.fail
        if ended.timed_out or ended.code != exit_code(self._last) or not (permission or fail):
            return reply
        if fail:
            reset = None if fail.reset_in is None else self._now() + fail.reset_in
            return self._reported(fail.failure_kind, fail.message, reset)
        self._watch(contract.PermissionAsked(permission))
        return self._failure(FailureKind.permission, f"asked for a permission that it cannot get: {permission}")


def exit_code(step: Step) -> int:
    return step.exit if step.exit is not None else int(step.fail is not None)


def played(step: Step, task: str) -> dict[str, object]:
    """A step as the player reads it."""
    text = step.result_text
    if step.fail or step.permission:
        text = None
    elif step.result is not None:
        usage = {"input_tokens": step.usage.input, "output_tokens": step.usage.output} if step.usage else None
        result = completed(step.result, task)
        text = msgspec.json.encode(({"usage": usage} if usage else {}) | result).decode()
    document: dict[str, object] = msgspec.to_builtins(step)
    return document | {"say": step.lines, "result_text": text}
