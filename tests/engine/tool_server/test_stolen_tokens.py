"""A token that an agent took from another one's environment is of no use to it."""

import os
import sys
from collections.abc import Sequence

import anyio
import pytest
from tests.engine.conftest import Office

from iterdev.agents.contract import ToolServer
from iterdev.execution.tool_server.access import AttemptAccess
from iterdev.host.processes.spawn import Supervisor

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux says which process has a connection"),
]

PING = """
import http.client, sys, urllib.parse
place = urllib.parse.urlsplit(sys.argv[1])
connection = http.client.HTTPConnection(place.hostname, place.port)
headers = {"Authorization": "Bearer " + sys.argv[2], "Content-Type": "application/json"}
connection.request("POST", place.path, '{"jsonrpc": "2.0", "id": 1, "method": "ping"}', headers)
print(connection.getresponse().status)
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def ping(server: ToolServer, *around: str) -> Sequence[str]:
    return [*around, sys.executable, "-I", "-S", "-c", PING, server.url, server.token]


async def status(supervisor: Supervisor, argv: Sequence[str], attempt: AttemptAccess | None = None) -> str:
    """What the server answers to a program, which may be one of the attempt."""
    async with supervisor.spawn(argv, cwd="/", env={"PATH": os.environ["PATH"]}, limit=60) as process:
        if attempt:
            attempt.started(process.pid)
        return b"".join([chunk async for _, chunk in process.output()]).decode().strip()


async def test_only_programs_of_the_attempt_can_use_its_token(office: Office) -> None:
    async with Supervisor() as supervisor, office.server.opened():
        with office.server.access(office.job()) as attempt, office.server.access(office.job("DESIGN-001")) as other:
            own = await status(supervisor, ping(attempt.server, "sh", "-c", '"$@"', "sh"), attempt)
            thief = await status(supervisor, ping(attempt.server), other)
            stranger = await status(supervisor, ping(attempt.server))

    assert (own, thief, stranger) == ("200", "403", "403")
    assert "a program of another attempt used the token of DEV-001, and was refused" in office.log.state.warnings


async def test_a_daemon_of_the_attempt_can_use_its_token(office: Office) -> None:
    async with Supervisor() as supervisor, office.server.opened():
        with office.server.access(office.job()) as attempt:
            daemon = ping(attempt.server, "sh", "-c", '(setsid "$@" &); sleep 600 & wait', "sh")
            async with supervisor.spawn(daemon, cwd="/", env={"PATH": os.environ["PATH"]}, limit=60) as process:
                attempt.started(process.pid)
                _, said = await anext(process.output())

    assert said == b"200\n"


async def test_an_attempt_elsewhere_is_not_refused_because_its_programs_cannot_be_seen(office: Office) -> None:
    async with Supervisor() as supervisor, office.server.opened():
        with office.server.access(office.job()) as attempt:
            assert await status(supervisor, ping(attempt.server)) == "200"


async def test_a_program_outside_of_every_attempt_is_let_in(office: Office) -> None:
    async with Supervisor() as supervisor, office.server.opened():
        with office.server.access(office.job()) as attempt:
            async with supervisor.spawn(["sleep", "600"], cwd="/", env={"PATH": os.environ["PATH"]}) as program:
                attempt.started(program.pid)
                outside = await anyio.run_process(ping(attempt.server))

    assert outside.stdout == b"200\n"
