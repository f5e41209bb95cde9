"""Starts real programs for agents, without the supervisor of the host layer."""

import os
import signal
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteReceiveStream, Process

from iterdev.agents.contract import Agent, AgentEvent, Assignment, Permissions, Reply, Spawn
from iterdev.core.processes import Exit

Chunk = tuple[str, bytes]
Play = Callable[..., tuple[list[Reply], list[AgentEvent]]]


class GroupProcess:
    """A program in a process group of its own, which ends with it."""

    def __init__(self, process: Process) -> None:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        self._process = process
        self._stdin = process.stdin
        self._streams = {"stdout": process.stdout, "stderr": process.stderr}
        self._timed_out = False
        self._sender, self._receiver = anyio.create_memory_object_stream[Chunk](1)

    async def write(self, data: bytes) -> None:
        await self._stdin.send(data)

    async def close_input(self) -> None:
        await self._stdin.aclose()

    async def output(self) -> AsyncIterator[Chunk]:
        async with self._receiver:
            async for chunk in self._receiver:
                yield chunk

    async def wait(self) -> Exit:
        return Exit(code=await self._process.wait(), timed_out=self._timed_out)

    async def end(self) -> None:
        self.kill()
        await self._process.wait()

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)

    async def kill_the_rest(self) -> None:
        await self._process.wait()
        self.kill()

    async def kill_after(self, limit: float) -> None:
        await anyio.sleep(limit)
        self._timed_out = True
        self.kill()

    async def pump(self) -> None:
        async with self._sender, anyio.create_task_group() as group:
            for name, stream in self._streams.items():
                group.start_soon(self._pump, name, stream)

    async def _pump(self, name: str, stream: ByteReceiveStream) -> None:
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in stream:
                await self._sender.send((name, chunk))

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            await self.end()
            self._sender.close()
            self._receiver.close()
            with suppress(anyio.BrokenResourceError):
                await self._process.aclose()


@asynccontextmanager
async def spawn_group(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], limit: float | None = None
) -> AsyncIterator[GroupProcess]:
    program = GroupProcess(await anyio.open_process(argv, cwd=cwd, env=dict(env), start_new_session=True))
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(program.pump)
            group.start_soon(program.kill_the_rest)
            if limit is not None:
                group.start_soon(program.kill_after, limit)
            yield program
            group.cancel_scope.cancel()
    finally:
        await program.close()


@pytest.fixture
def spawn() -> Spawn:
    return spawn_group


@pytest.fixture
def assignment(tmp_path: Path) -> Assignment:
    for folder in ("workspace", "session"):
        (tmp_path / folder).mkdir()
    return Assignment(
        task="DEV-001",
        role="developer",
        attempt=1,
        session="ids-demo-20260101",
        session_dir=str(tmp_path / "session"),
        workspace=str(tmp_path / "workspace"),
        result_path=str(tmp_path / "session" / "result.json"),
        schema={},
        permissions=Permissions(write=True),
        limit=60,
        environment={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )


@pytest.fixture
def play(spawn: Spawn, assignment: Assignment) -> Play:
    """Gives an agent one turn per prompt, and returns its replies and all that was seen meanwhile."""

    def converse(agent: Agent, *prompts: str, given: Assignment = assignment) -> tuple[list[Reply], list[AgentEvent]]:
        events: list[AgentEvent] = []

        async def turns() -> list[Reply]:
            async with agent.open(given, spawn=spawn, watch=events.append) as conversation:
                return [await conversation.send(prompt) for prompt in prompts or ("Do it.",)]

        return anyio.run(turns), events

    return converse
