"""Every user of the machine can connect to the tools: what that may cost has limits, and agents are served."""

import os
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from urllib.parse import urlsplit

import anyio
import pytest
from anyio.abc import SocketStream

from iterdev.execution.tool_server.http import BODY_LIMIT, REJECTED_BODY_LIMIT, Head, Limits, Response, serving

FEW = Limits(connections=8, per_caller=2, stranger=0.2, idle=0.2, transfer=0.2)
PATIENT = Limits(connections=8, per_caller=2)


class Door:
    """Lets in whoever says `agent`, and echoes."""

    bodies = 0

    def rejection(self, head: Head) -> Response | None:
        return None if head.caller.startswith("agent") else Response(status=401)

    async def respond(self, _: Head, body: bytes) -> Response:
        self.bodies += 1
        return Response(status=200, body=body)


class Visitors:
    def __init__(self, port: int, stack: AsyncExitStack) -> None:
        self.port, self._stack = port, stack

    async def connect(self) -> SocketStream:
        return await self._stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", self.port))

    def request(self, body: bytes = b"hello", *, caller: str = "agent", length: int | None = None) -> bytes:
        size = len(body) if length is None else length
        head = f"POST / HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAuthorization: {caller}\r\n"
        return f"{head}Content-Length: {size}\r\n\r\n".encode() + body

    async def ask(self, stream: SocketStream | None = None, **options: str) -> bytes:
        stream = stream or await self.connect()
        await stream.send(self.request(**options))
        return (await stream.receive())[:12]


@asynccontextmanager
async def visitors(limits: Limits, door: Door | None = None) -> AsyncIterator[Visitors]:
    async with serving(door or Door(), limits) as address, AsyncExitStack() as stack:
        yield Visitors(urlsplit(address).port or 0, stack)


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        with anyio.fail_after(30):
            await test()

    anyio.run(limited)


async def is_closed(stream: SocketStream) -> bool:
    try:
        return not await stream.receive()
    except (anyio.EndOfStream, anyio.BrokenResourceError):
        return True


def second_free_descriptor() -> int:
    first, second = os.dup(0), os.dup(0)
    os.close(first)
    os.close(second)
    return second


OK = b"HTTP/1.1 200"


def test_idle_connections_of_strangers_give_way_to_agents() -> None:
    async def test() -> None:
        async with visitors(PATIENT) as street:
            known = await street.connect()
            assert await street.ask(known) == OK
            idle = [await street.connect() for _ in range(20)]

            assert await street.ask(caller="agent 2") == OK
            assert await street.ask(known) == OK
            assert await is_closed(idle[0])

    run(test)


def test_a_process_without_file_descriptors_goes_on_serving_when_it_has_some() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def test() -> None:
        async with visitors(Limits()) as street:
            waiting = await street.connect()
            await anyio.lowlevel.checkpoint()
            resource.setrlimit(resource.RLIMIT_NOFILE, (second_free_descriptor(), before[1]))
            try:
                # The client's own end takes the last descriptor, so that there is none for the server's.
                late = await street.connect()
                await late.send(street.request())
                await anyio.sleep(0.05)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, before)

            assert (await late.receive())[:12] == OK
            assert await street.ask(waiting) == OK

    run(test)


def test_one_agent_cannot_take_the_connections_of_the_others() -> None:
    async def test() -> None:
        async with visitors(PATIENT) as street:
            first = await street.connect()
            assert await street.ask(first) == OK
            for _ in range(2):
                assert await street.ask() == OK

            assert await is_closed(first)

    run(test)


@pytest.mark.parametrize("sent", [b"", b"POST / HT", None])
def test_a_connection_on_which_nothing_comes_is_closed(sent: bytes | None) -> None:
    async def test() -> None:
        async with visitors(FEW) as street:
            stream = await street.connect()
            await stream.send(street.request(b"half", length=100) if sent is None else sent)

            assert await is_closed(stream)

    run(test)


def test_an_agent_that_has_been_served_may_be_silent_longer_than_a_stranger() -> None:
    async def test() -> None:
        async with visitors(Limits(stranger=0.05)) as street:
            stream = await street.connect()
            assert await street.ask(stream) == OK
            await is_closed(await street.connect())

            assert await street.ask(stream) == OK

    run(test)


@pytest.mark.parametrize(
    ("caller", "size", "status"),
    [
        ("agent", BODY_LIMIT + 1, b"413"),
        ("nobody", REJECTED_BODY_LIMIT + 1, b"401"),
        ("nobody", 1000, b"401"),
        ("agent", 1000, b"200"),
    ],
)
def test_a_body_is_read_as_far_as_the_caller_may_be_believed(caller: str, size: int, status: bytes) -> None:
    door = Door()

    async def test() -> None:
        async with visitors(PATIENT, door) as street:
            stream = await street.connect()
            async with anyio.create_task_group() as group:
                group.start_soon(partial(send, stream, street.request(b"x" * size, caller=caller)))
                assert (await stream.receive())[9:12] == status
                group.cancel_scope.cancel()

    run(test)

    assert door.bodies == (status == b"200")


async def send(stream: SocketStream, data: bytes) -> None:
    with suppress(anyio.BrokenResourceError):
        await stream.send(data)
