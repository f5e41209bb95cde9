import os
import sys
from pathlib import Path

import pytest

from iterdev.host.processes.ancestry import ancestors, nearest_monitor
from iterdev.host.processes.spawn import Supervisor, run

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the ancestors of a process"),
]

LOOK = "import os; from iterdev.host.processes.ancestry import nearest_monitor; print(nearest_monitor(os.getpid()).pid)"
DAEMON = 'python=$1; look=$2; (env -i setsid "$python" -c "$look" > "$3.part"; mv "$3.part" "$3") & '
WAIT = 'while [ ! -e "$3" ]; do sleep 0.05; done; echo $PPID; cat "$3"'


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def output(script: str, *words: str) -> list[str]:
    argv = ["sh", "-c", script, "sh", sys.executable, LOOK, *words]
    async with Supervisor() as supervisor:
        done = await run(supervisor.spawn, argv, cwd="/", env={"PATH": os.environ["PATH"]}, limit=60)
    return done.stdout.decode().split()


async def test_a_program_finds_its_monitor_without_any_variable() -> None:
    monitor, found = await output('echo $PPID; env -i "$1" -c "$2"')

    assert found == monitor


async def test_a_daemon_that_left_its_session_and_its_parent_finds_it_too(tmp_path: Path) -> None:
    monitor, found = await output(f"({DAEMON}); {WAIT}", f"{tmp_path}/found")

    assert found == monitor


async def test_a_process_outside_of_every_attempt_has_no_monitor() -> None:
    own = list(ancestors(os.getpid()))

    assert own[:2] == [os.getpid(), os.getppid()]
    assert nearest_monitor(own[-1]) is None
