import sys
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import pytest

from iterdev.agents.common.streams import Lines, Write, connect
from iterdev.agents.contract import Process, Spawn
from iterdev.core.errors import HostError
from iterdev.core.processes import Exit
from iterdev.host.processes.spawn import Supervisor


def test_lines_are_whole_however_the_chunks_are_cut() -> None:
    text = b'{"a": 1}\n\n{"b": "\xc3\xa9"}\nunfinished'

    for size in range(1, len(text) + 1):
        lines = Lines()
        received = [line for start in range(0, len(text), size) for line in lines.feed(text[start : start + size])]
        assert received == [b'{"a": 1}', b"", b'{"b": "\xc3\xa9"}']


def test_a_line_beyond_the_limit_is_left_out_and_the_next_one_is_not() -> None:
    lines = Lines(limit=10)

    received = [line for chunk in (b"x" * 8, b"x" * 8, b"\nshort\n", b"y" * 10 + b"\n") for line in lines.feed(chunk)]

    assert received == [b"short", b"y" * 10]


def test_a_line_that_never_ends_is_not_held_in_memory() -> None:
    lines = Lines(limit=1000)

    for _ in range(100):
        lines.feed(b"x" * 100)

    assert len(lines._begun) <= 1000


ECHO = """
import sys
print("Welcome!")
for line in sys.stdin:
    print("thinking", file=sys.stderr)
    print(line, end="", flush=True)
sys.exit(3)
"""


class Received:
    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.stderr = b""
        self.twice, self.ended = anyio.Event(), anyio.Event()
        self.exit: Exit | None = None

    def connect(self, process: Process) -> AbstractAsyncContextManager[Write]:
        return connect(process, message=self.receive, stderr=self.receive_stderr, exited=self.end)

    def receive(self, message: bytes) -> None:
        self.messages.append(message)
        if len(self.messages) == 2:
            self.twice.set()

    def receive_stderr(self, chunk: bytes) -> None:
        self.stderr += chunk

    def end(self, exit_: Exit) -> None:
        self.exit = exit_
        self.ended.set()


def test_messages_go_both_ways_and_other_lines_are_left_out(spawn: Spawn, tmp_path: Path) -> None:
    async def converse() -> Received:
        received = Received()
        async with (
            spawn([sys.executable, "-c", ECHO], cwd=str(tmp_path), env={}) as process,
            received.connect(process) as send,
        ):
            send({"n": 1})
            send({"n": "x" * 300_000})
            with anyio.fail_after(20):
                await received.twice.wait()
                await process.close_input()
                await received.ended.wait()
        return received

    received = anyio.run(converse)

    assert [len(message) for message in received.messages] == [len('{"n":1}'), len('{"n":""}') + 300_000]
    assert received.stderr == b"thinking\n" * 2
    assert received.exit == Exit(code=3)


def test_an_error_of_the_user_of_a_connection_is_raised_unchanged(tmp_path: Path) -> None:
    async def converse() -> None:
        async with (
            Supervisor() as host,
            host.spawn([sys.executable, "-c", ECHO], cwd=str(tmp_path), env={}) as process,
            Received().connect(process),
        ):
            raise HostError("The disk is full")

    with pytest.raises(HostError, match="disk"):
        anyio.run(converse)
