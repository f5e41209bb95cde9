"""What a program can learn from the processes that started it."""

import ctypes
import os
import subprocess
import sys

import pytest

from iterdev.host.processes.spawn import Supervisor, run

SECRET = "k7Qw9zX2mN4vB8cL1pR5"
READ_PARENTS = """
import pathlib
status = pathlib.Path("/proc/self/status").read_text()
for _ in range(2):
    parent = status.split("PPid:")[1].split()[0]
    print(pathlib.Path("/proc", parent, "cmdline").read_bytes(), pathlib.Path("/proc", parent, "environ").read_bytes())
    status = pathlib.Path("/proc", parent, "status").read_text()
"""
READ_BY_OTHER = """
import ctypes, os, sys
from iterdev.host.processes.supervisor import LIBC, PR_SET_DUMPABLE, hide_memory
os.setresuid(*[int(sys.argv[1])] * 3)
LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
if sys.argv[2] == "hidden":
    hide_memory()
owner = os.getpid()
if (child := os.fork()) == 0:
    LIBC.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)
    try:
        os._exit(len(open(f"/proc/{owner}/environ", "rb").read()) > 0)
    except PermissionError:
        os._exit(2)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment of a process")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_a_supervisor_and_its_monitors_have_no_secret_in_their_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MODEL_API_KEY", SECRET)

    async with Supervisor() as supervisor:
        done = await run(
            supervisor.spawn, [sys.executable, "-c", READ_PARENTS], cwd="/", env={"PATH": os.defpath}, limit=60
        )

    assert done.stdout.count(b"supervisor.py") == 2, done.stderr
    assert SECRET.encode() not in done.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize(("how", "exit_code"), [("open", 1), ("hidden", 2)])
def test_another_process_of_the_user_cannot_read_a_process_that_hides(how: str, exit_code: int) -> None:
    nobody = "65534"

    done = subprocess.run(
        [sys.executable, "-c", READ_BY_OTHER, nobody, how], capture_output=True, text=True, check=False
    )

    assert done.stdout == f"{exit_code}\n", done.stderr


@pytest.mark.anyio
async def test_the_process_that_starts_programs_hides_as_well() -> None:
    get_dumpable = 3

    async with Supervisor():
        assert ctypes.CDLL(None).prctl(get_dumpable, 0, 0, 0, 0) == 0
