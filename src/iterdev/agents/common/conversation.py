"""Conversations: what all adapters do alike, the one with a program that follows interface.md 3, and a failed one."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct

from iterdev.agents.common.environment import agent_environment, resolve_command
from iterdev.agents.common.failures import FAILURE_TEXT, exit_failure
from iterdev.agents.common.output import MESSAGE_LENGTH, STDERR_KEPT, STDOUT_KEPT, OutputTail
from iterdev.agents.common.reset_times import reset_at
from iterdev.agents.common.result_file import delete_result, last_json_object, read_result, reported_usage
from iterdev.agents.common.turns import TurnGate, run_turn
from iterdev.agents.contract import AgentFailure, Answer, Assignment, FailureKind, Reply, Spawn, Spent, Watch
from iterdev.core.errors import HostError
from iterdev.core.processes import Exit
from iterdev.core.results import Usage


class AgentConversation(ABC):
    """Turns, failures, results and usage of a conversation; an adapter adds how a turn is carried out."""

    def __init__(
        self,
        name: str,
        assignment: Assignment,
        watch: Watch,
        *,
        login: str = "",
        now: Callable[[], float] = time.time,
        stop_timeout: float = 0,
    ) -> None:
        """`login` says how the user logs in; `stop_timeout` are the seconds that an agent has to stop when asked to."""
        self._name, self._assignment, self._watch = name, assignment, watch
        self._login, self._now = login, now
        self._gate = TurnGate(assignment.limit, self._ask_to_stop, stop_timeout)

    async def send(self, prompt: str) -> Reply:
        try:
            reply = await self._gate.run(partial(self._turn, prompt))
        except (OSError, HostError) as error:
            return self._failure(FailureKind.crashed, f"could not be started: {error}")
        return reply or self._interrupted()

    async def close(self) -> None:
        await self._gate.close()

    @abstractmethod
    async def _turn(self, prompt: str) -> Reply: ...

    async def _ask_to_stop(self) -> bool:
        """Asks the agent to end the running turn; whether the gate is to wait for that."""
        return False

    def _failure(self, kind: FailureKind, what: str, reset: float | None = None) -> AgentFailure:
        return AgentFailure(kind=kind, message=f'The agent "{self._name}" {what}', reset_at=reset)

    def _interrupted(self) -> AgentFailure:
        return self._failure(FailureKind.timed_out, "was interrupted")

    def _exited(self, ended: Exit, stderr: bytes | bytearray) -> AgentFailure:
        return self._failure(*exit_failure(ended, stderr, self._assignment.limit))

    def _reported(self, kind: FailureKind, words: str, reset: float | None = None) -> AgentFailure:
        """A failure that the agent reports in its own words, which may name the time of a reset."""
        what = f"{FAILURE_TEXT.get(kind, 'failed')}: {words[:MESSAGE_LENGTH]}"
        if kind is FailureKind.not_logged_in and self._login:
            what += f"; {self._login}"
        if kind is not FailureKind.limited:
            return self._failure(kind, what)
        return self._failure(kind, what, reset or reset_at(words, self._now()))

    def _delete_result(self) -> None:
        delete_result(self._assignment.result_path)

    def _result(self, text: bytes | bytearray) -> bytes | None:
        """The result file, or else the last JSON object of a text."""
        return read_result(self._assignment.result_path) or last_json_object(text)

    def _count(self, usage: Usage) -> Usage:
        if usage.tokens or usage.cost_usd:
            self._watch(Spent(usage))
        return usage


class CommandConversation(AgentConversation):
    """One start of a command per turn. The program remembers nothing, so each turn repeats the first prompt."""

    def __init__(
        self, name: str, command: Sequence[str], assignment: Assignment, *, root: str, spawn: Spawn, watch: Watch
    ) -> None:
        super().__init__(name, assignment, watch)
        self._command, self._root, self._spawn = command, root, spawn
        self._attempt = assignment.attempt - 1
        self._first = ""

    async def _turn(self, prompt: str) -> Reply:
        self._attempt += 1
        text = f"{self._first}\n\n---\n\n{prompt}" if self._first else prompt
        self._first = self._first or prompt
        return await self._run(text.encode(errors="replace"))

    async def _run(self, text: bytes) -> Reply:
        work = self._assignment
        self._delete_result()
        tails = {
            "stdout": OutputTail(self._watch, keep=STDOUT_KEPT),
            "stderr": OutputTail(self._watch, keep=STDERR_KEPT),
        }
        ended = await run_turn(
            self._spawn,
            resolve_command(self._command, root=self._root, assignment=work),
            text,
            cwd=work.workspace,
            env=agent_environment(work, self._attempt),
            limit=self._gate.time_left,
            feed=lambda stream, chunk: tails[stream].feed(chunk),
        )
        for tail in tails.values():
            tail.finish()
        return self._reply_to(ended, tails["stdout"].kept, tails["stderr"].kept)

    def _reply_to(self, ended: Exit, stdout: bytes | bytearray, stderr: bytes | bytearray) -> Reply:
        body = self._result(stdout)
        # A turn that failed has used something as well, if it came as far as a result.
        usage = self._count(reported_usage(body)) if body else Usage()
        if ended.timed_out or ended.code != 0:
            return self._exited(ended, stderr)
        if body is None:
            missing = "ended without a result: no file at ITERDEV_RESULT, no JSON object on standard output"
            return self._failure(FailureKind.silent, missing)
        return Answer(body=body, usage=usage)


class FailedConversation(Struct, frozen=True):
    """A conversation with an agent that could not be started: every turn is the same failure."""

    failure: AgentFailure

    async def send(self, prompt: str) -> Reply:
        del prompt
        return self.failure

    @classmethod
    def of(cls, name: str, error: Exception, kind: FailureKind = FailureKind.crashed) -> "FailedConversation":
        return cls(AgentFailure(kind=kind, message=f'The agent "{name}" could not be started: {error}'))
