"""Conversations: what all adapters do alike, and the one with a program that follows interface.md 3."""

import math
import shutil
import signal
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import anyio

from iterdev.agents.common.environment import agent_environment, resolve_command
from iterdev.agents.common.failures import FAILURE_TEXT, exit_text, reset_at
from iterdev.agents.common.result_file import last_json_object, read_result, reported_usage
from iterdev.agents.common.streams import STDERR_KEPT, STDOUT_KEPT, OutputTail, last_lines, quoted
from iterdev.agents.contract import AgentFailure, Answer, Assignment, Process, Reply, Spawn, Spent, Watch
from iterdev.core.errors import HostError
from iterdev.core.formatting import duration
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.processes import Exit
from iterdev.core.results import Usage


class AgentConversation(AbstractAsyncContextManager["AgentConversation"]):
    """Turns, failures, results and usage of a conversation; an adapter adds how a turn is carried out.

    One turn runs at a time, within the time of the attempt. Leaving the context closes the conversation.
    """

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
        self._login, self._now, self._stop_timeout = login, now, stop_timeout
        self._deadline = anyio.current_time() + assignment.limit
        self._turn_lock = anyio.Lock()
        self._running_turn = anyio.CancelScope()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(self, prompt: str) -> Reply:
        try:
            await self._interrupt()
            async with self._turn_lock:
                with anyio.CancelScope() as self._running_turn:
                    return await self._turn(prompt)
        except (OSError, HostError) as error:
            return self._failure(FailureKind.crashed, f"could not be started: {error}")
        return self._interrupted()

    async def close(self) -> None:
        """Interrupts a turn that is still running, and leaves no time for another one."""
        self._deadline = -math.inf
        with anyio.CancelScope(shield=True):
            await self._interrupt()
            async with self._turn_lock:
                pass

    async def _interrupt(self) -> None:
        with anyio.move_on_after(self._stop_timeout), suppress(ConnectionError):
            if await self._ask_to_stop():
                async with self._turn_lock:
                    return
        self._running_turn.cancel()

    @abstractmethod
    async def _turn(self, prompt: str) -> Reply: ...

    async def _ask_to_stop(self) -> bool:
        """Asks the agent to end the running turn; whether to wait for that."""
        return False

    async def _run_program(
        self, spawn: Spawn, argv: Sequence[str], env: Mapping[str, str], data: bytes, feed: Callable[[str, bytes], None]
    ) -> Exit:
        """Starts a program for one turn, with the data on its standard input, and feeds its output as it comes."""
        limit = self._deadline - anyio.current_time()
        if limit <= 0:
            return Exit(code=-signal.SIGTERM, timed_out=True)
        program = spawn(argv, cwd=self._assignment.workspace, env=env, limit=limit)
        async with program as process, anyio.create_task_group() as group:
            group.start_soon(_write_input, process, data)
            async for stream, chunk in process.output():
                feed(stream, chunk)
            ended = await process.wait()
            group.cancel_scope.cancel()
        return ended

    def _failure(self, kind: FailureKind, what: str, reset: float | None = None) -> AgentFailure:
        return AgentFailure(kind=kind, message=f'The agent "{self._name}" {what}', reset_at=reset)

    def _interrupted(self) -> AgentFailure:
        return self._failure(FailureKind.timed_out, "was interrupted")

    def _exited(self, ended: Exit, stderr: bytes | bytearray) -> AgentFailure:
        """A program that exited without a result."""
        if ended.timed_out:
            return self._failure(FailureKind.timed_out, f"ran longer than {duration(self._assignment.limit)}")
        details = last_lines(stderr)
        return self._failure(FailureKind.crashed, exit_text(ended.code) + (f": {details}" if details else ""))

    def _reported(self, kind: FailureKind, words: str, reset: float | None = None) -> AgentFailure:
        """A failure that the agent reports in its own words, which may name the time of a reset."""
        what = f"{FAILURE_TEXT.get(kind, 'failed')}: {quoted(words)}"
        if kind is FailureKind.not_logged_in and self._login:
            what += f"; {self._login}"
        if kind is not FailureKind.limited:
            return self._failure(kind, what)
        return self._failure(kind, what, reset or reset_at(words, self._now()))

    def _delete_result(self) -> None:
        path = Path(self._assignment.result_path)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    def _result(self, text: bytes | bytearray) -> bytes | None:
        """The result file, or else the last JSON object of a text."""
        return read_result(self._assignment.result_path) or last_json_object(text)

    def _count(self, usage: Usage) -> Usage:
        if usage.tokens or usage.cost_usd:
            self._watch(Spent(usage))
        return usage


async def _write_input(process: Process, data: bytes) -> None:
    # A program is free to end, or to close its input, before it has read everything.
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.write(data)
        await process.close_input()


def usage_since(counted: Usage, total: Usage) -> Usage:
    """What was used since the last count, for agents that report totals."""
    return Usage(
        input_tokens=max(0, total.input_tokens - counted.input_tokens),
        output_tokens=max(0, total.output_tokens - counted.output_tokens),
    )


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
        self._delete_result()
        stdout, stderr = OutputTail(self._watch, keep=STDOUT_KEPT), OutputTail(self._watch, keep=STDERR_KEPT)
        ended = await self._run_program(
            self._spawn,
            resolve_command(self._command, root=self._root, assignment=self._assignment),
            agent_environment(self._assignment, self._attempt),
            text,
            lambda stream, chunk: (stderr if stream == "stderr" else stdout).feed(chunk),
        )
        stdout.finish()
        stderr.finish()
        return self._reply_to(ended, stdout.kept, stderr.kept)

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
