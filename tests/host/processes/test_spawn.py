import fcntl
import os
import signal
import subprocess
import sys
import time
import tracemalloc
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path

import anyio
import pytest

from iterdev.core.errors import HostError
from iterdev.core.processes import ProcessIdentity
from iterdev.host.processes import control_group
from iterdev.host.processes.identity import alive, identity
from iterdev.host.processes.spawn import Process, ProgramResult, Supervisor, run
from iterdev.host.processes.supervisor import parents
from iterdev.host.processes.trees import kill_left_by

pytestmark = pytest.mark.anyio

MARK = "ITERDEV_TEST_MARK"

DAEMON = '( setsid sh -c "echo ready; exec sleep 600" & );'
"""Forks twice and leaves the session of its parent."""

OWNER = f"""
import anyio, os, sys
from iterdev.host.processes.spawn import Supervisor

async def main():
    async with Supervisor(lease_fds=[int(sys.argv[1])]) as supervisor:
        script = '{DAEMON} trap "" TERM; sleep 600; exit'
        async with supervisor.spawn(["sh", "-c", script], cwd="/", env=os.environ) as program:
            async for _, chunk in program.output():
                os.write(1, chunk)

anyio.run(main)
"""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def env() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], MARK: uuid.uuid4().hex}


@pytest.fixture
async def supervisor() -> AsyncIterator[Supervisor]:
    async with Supervisor() as supervisor:
        yield supervisor


def living(env: dict[str, str]) -> list[str]:
    """The command lines of all processes with the mark of this environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if env[MARK].encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text())
    return found


def status(pid: int) -> dict[str, str]:
    return dict(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())


def descriptors(pid: int) -> list[str]:
    return sorted(path.name for path in Path(f"/proc/{pid}/fd").iterdir())


def parent(pid: int) -> int:
    return int(status(pid)["PPid"])


def children(pid: int) -> list[int]:
    return [child for child, parent in parents() if parent == pid]


def eventually(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def is_free(lock: Path) -> bool:
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


async def until(text: bytes, program: Process) -> None:
    """Reads until the program has said this."""
    said = b""
    async for _, chunk in program.output():
        said += chunk
        if text in said:
            return
    pytest.fail(f"only heard {said!r}")


async def sh(supervisor: Supervisor, script: str, env: dict[str, str]) -> ProgramResult:
    return await run(supervisor.spawn, ["sh", "-c", script], cwd="/", env=env, limit=60)


async def fed(program: Process, data: bytes) -> bytes:
    """What the program writes while it is given the data."""

    async def feed() -> None:
        await program.write(data)
        await program.close_input()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(feed)
        return b"".join([chunk async for _, chunk in program.output()])


@pytest.mark.parametrize(("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", -9), ("kill -15 $$", -15)])
async def test_an_exit_is_reported_as_in_subprocess(
    supervisor: Supervisor, env: dict[str, str], script: str, code: int
) -> None:
    finished = await sh(supervisor, script, env)

    assert (finished.code, finished.timed_out) == (code, False)


async def test_a_megabyte_goes_in_and_comes_back(supervisor: Supervisor, env: dict[str, str]) -> None:
    data = os.urandom(1 << 20)

    async with supervisor.spawn(["cat"], cwd="/", env=env, limit=60) as program:
        assert await fed(program, data) == data


async def test_a_flood_of_output_is_read_but_not_held(supervisor: Supervisor, env: dict[str, str]) -> None:
    tracemalloc.start()

    finished = await sh(supervisor, "head -c 50000000 /dev/zero; echo end", env)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert finished.stdout.endswith(b"\0end\n")
    assert len(finished.stdout) == 65536
    assert peak < 4_000_000


async def test_both_streams_come_as_they_are_written(supervisor: Supervisor, env: dict[str, str]) -> None:
    script = "for word in a b c; do echo $word; read _; echo $word >&2; read _; done"
    heard = []

    async with supervisor.spawn(["sh", "-c", script], cwd="/", env=env) as program:
        async for stream, chunk in program.output():
            heard.append((stream, chunk))
            await program.write(b"\n")

    assert heard == [(stream, word) for word in (b"a\n", b"b\n", b"c\n") for stream in ("stdout", "stderr")]


async def test_input_that_is_not_read_is_dropped(supervisor: Supervisor, env: dict[str, str]) -> None:
    async with supervisor.spawn(["sh", "-c", "exec <&-; echo ready; sleep 600"], cwd="/", env=env) as program:
        await until(b"ready", program)

        await program.write(bytes(1 << 20))
        await program.close_input()
        await program.write(b"more")


async def test_input_ends_with_the_program_that_did_not_read_it(supervisor: Supervisor, env: dict[str, str]) -> None:
    async with supervisor.spawn(["sleep", "600"], cwd="/", env=env, limit=0.05) as program:
        await fed(program, bytes(1 << 20))

        assert (await program.wait()).timed_out


async def test_output_ends_with_the_tree_even_if_another_process_holds_the_pipe(
    supervisor: Supervisor, env: dict[str, str]
) -> None:
    async with supervisor.spawn(["sh", "-c", "read _; echo last"], cwd="/", env=env) as program:
        stranger = os.open(f"/proc/{program.pid}/fd/1", os.O_WRONLY)
        await program.write(b"\n")
        said = [chunk async for _, chunk in program.output()]

    os.close(stranger)
    assert said == [b"last\n"]


async def test_a_program_is_ended_at_its_limit(supervisor: Supervisor, env: dict[str, str]) -> None:
    async with supervisor.spawn(["sleep", "600"], cwd="/", env=env, limit=0.05) as program:
        ended = await program.wait()

    assert (ended.code, ended.timed_out) == (-signal.SIGTERM, True)


async def test_a_program_and_its_children_may_clean_up_before_they_end(
    supervisor: Supervisor, env: dict[str, str]
) -> None:
    child = 'sh -c "trap \\"sleep 0.1; echo child; exit\\" TERM; echo ready; while :; do sleep 0.01; done"'
    said = b""

    async with supervisor.spawn(["sh", "-c", f"trap 'exit 7' TERM; {child} & wait"], cwd="/", env=env) as program:
        await until(b"ready", program)
        await program.end()
        async for stream, chunk in program.output():
            said += chunk if stream == "stdout" else b""

    assert (await program.wait()).code == 7
    assert said == b"child\n"


async def test_a_program_that_ignores_sigterm_is_killed(env: dict[str, str]) -> None:
    script = 'trap "" TERM; echo ready; while :; do sleep 600; done'

    async with (
        Supervisor(grace=0.05) as supervisor,
        supervisor.spawn(["sh", "-c", script], cwd="/", env=env) as program,
    ):
        await until(b"ready", program)
        await program.end()

        assert (await program.wait()).code == -signal.SIGKILL
        assert living(env) == []


async def test_a_child_that_outlives_its_parent_is_ended(supervisor: Supervisor, env: dict[str, str]) -> None:
    finished = await sh(supervisor, "sleep 600 & exit 5", env)

    assert finished.code == 5
    assert living(env) == []


async def test_a_daemon_is_ended_when_its_program_exits(supervisor: Supervisor, env: dict[str, str]) -> None:
    async with supervisor.spawn(["sh", "-c", f"{DAEMON} read _"], cwd="/", env=env) as program:
        await until(b"ready", program)
        eventually(lambda: len(living(env)) == len(("sh", "daemon")))

        await program.write(b"\n")
        await program.wait()

        assert living(env) == []


async def test_a_tree_that_keeps_forking_is_ended(supervisor: Supervisor, env: dict[str, str]) -> None:
    script = 'trap "" TERM; fork() { sleep 0.02; fork & }; fork; echo ready; sleep 600'

    async with supervisor.spawn(["bash", "-c", script], cwd="/", env=env) as program:
        await until(b"ready", program)
        os.kill(program.pid, signal.SIGKILL)
        await program.wait()

        assert living(env) == []


async def test_a_cancelled_scope_ends_the_tree(supervisor: Supervisor, env: dict[str, str]) -> None:
    with anyio.CancelScope() as scope:
        async with supervisor.spawn(["sh", "-c", f"{DAEMON} sleep 600"], cwd="/", env=env) as program:
            await until(b"ready", program)
            scope.cancel()
            await program.wait()

    assert scope.cancelled_caught
    assert living(env) == []


async def test_leaving_the_supervisor_ends_what_is_still_open(env: dict[str, str]) -> None:
    async with AsyncExitStack() as open_programs:
        async with Supervisor() as supervisor:
            program = await open_programs.enter_async_context(supervisor.spawn(["sleep", "600"], cwd="/", env=env))

        assert living(env) == []
        assert (await program.wait()).code == -signal.SIGTERM


def test_when_iterdev_is_killed_its_lock_is_free_only_after_the_whole_tree_has_ended(
    env: dict[str, str], tmp_path: Path
) -> None:
    lock = tmp_path / "lock"
    with lock.open("w") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        command = [sys.executable, "-c", OWNER, str(lease.fileno())]
        owner = subprocess.Popen(command, env=os.environ | env, pass_fds=[lease.fileno()], stdout=subprocess.DEVNULL)
    with owner:
        try:
            eventually(lambda: len(living(env)) == len(("owner", "sh", "its sleep", "daemon")))
        finally:
            owner.kill()

    eventually(lambda: is_free(lock))

    assert living(env) == []


async def test_a_monitor_that_is_killed_leaves_nothing(supervisor: Supervisor, env: dict[str, str]) -> None:
    async with (
        supervisor.spawn(["sh", "-c", f"{DAEMON} sleep 600"], cwd="/", env=env) as program,
        supervisor.spawn(["sleep", "600"], cwd="/", env={"PATH": env["PATH"]}) as bystander,
    ):
        await until(b"ready", program)

        os.kill(parent(program.pid), signal.SIGKILL)
        ended = await program.wait()

        assert ended.code == -signal.SIGKILL
        assert living(env) == []
        assert identity(bystander.pid)


@pytest.mark.parametrize("then", ["sleep 600", "while :; do kill -STOP $PPID; done"], ids=["once", "again and again"])
async def test_a_program_that_stops_its_monitor_is_ended_at_its_limit_all_the_same(
    env: dict[str, str], then: str
) -> None:
    async with (
        Supervisor(grace=0.1) as supervisor,
        supervisor.spawn(["sh", "-c", f"kill -STOP $PPID; {DAEMON} {then}"], cwd="/", env=env, limit=0.5) as program,
    ):
        await program.wait()

        assert living(env) == []


async def test_a_supervisor_that_is_killed_is_replaced_and_its_programs_go_on(
    supervisor: Supervisor, env: dict[str, str]
) -> None:
    async with supervisor.spawn(["sh", "-c", "read code; exit $code"], cwd="/", env=env) as program:
        os.kill(parent(parent(program.pid)), signal.SIGKILL)
        eventually(lambda: identity(supervisor._server.pid) is None)

        assert (await sh(supervisor, "exit 4", env)).code == 4

        await program.write(b"6\n")
        assert (await program.wait()).code == 6


@pytest.mark.parametrize("stopped", ["$PPID", "$(ps -o ppid= $PPID)", "$PPID $(ps -o ppid= $PPID)"])
async def test_a_program_that_stops_what_watches_it_is_ended_at_its_limit(
    supervisor: Supervisor, env: dict[str, str], stopped: str
) -> None:
    script = f"kill -STOP {stopped}; sleep 600"

    async with supervisor.spawn(["sh", "-c", script], cwd="/", env=env, limit=0.5) as program:
        ended = await program.wait()
        after = await sh(supervisor, "exit 4", env)

    assert (ended.timed_out, after.code) == (True, 4)
    assert living(env) == []


async def test_a_program_that_kills_what_watches_it_ends_with_all_that_it_started(
    supervisor: Supervisor, env: dict[str, str]
) -> None:
    script = f"{DAEMON} kill -9 $(ps -o ppid= $PPID) $PPID; sleep 600"

    async with supervisor.spawn(["sh", "-c", script], cwd="/", env=env) as program:
        ended = await program.wait()

        assert ended.code == -signal.SIGKILL
        assert living(env) == []


@pytest.mark.parametrize("hides", [False, True], ids=["as it is", "without its environment"])
def test_what_is_left_when_engine_supervisor_and_monitor_are_killed_is_found_later(
    env: dict[str, str], tmp_path: Path, *, hides: bool
) -> None:
    group = control_group.make(f"iterdev-test-{os.getpid()}")
    if group:
        control_group.end(group)
    elif hides:
        pytest.skip("no control group can be made here")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    daemon = f"exec {'env -i PATH=$PATH ' * hides}setsid sleep 600 >{pipe}"
    script = OWNER.replace(DAEMON, f"({daemon} &);")
    owner = subprocess.Popen([sys.executable, "-c", script, "0"], env=os.environ | env, stdin=subprocess.PIPE)
    engine = identity(owner.pid)
    assert engine
    with owner, pipe.open("rb") as opened:
        server = children(owner.pid)[0]
        for pid in (owner.pid, server, children(server)[0]):
            with suppress(ProcessLookupError):  # The supervisor may have ended by itself, as its owner is gone.
                os.kill(pid, signal.SIGKILL)
        owner.wait()

        kill_left_by(engine)

        assert opened.read() == b""
    assert living(env) == []
    assert control_group.find(f"iterdev-{engine.pid}-{engine.started}") is None


async def test_a_lease_is_held_while_a_program_runs_and_no_longer(env: dict[str, str], tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with lock.open("w") as lease:
        fcntl.flock(lease, fcntl.LOCK_EX)
        supervisor = await (leaving := AsyncExitStack()).enter_async_context(Supervisor(lease_fds=[lease.fileno()]))

    async with leaving, supervisor.spawn(["sleep", "600"], cwd="/", env=env):
        assert not is_free(lock)

    assert is_free(lock)


async def test_a_program_inherits_only_its_three_streams(env: dict[str, str], tmp_path: Path) -> None:
    with (tmp_path / "lock").open("w") as lease:
        async with (
            Supervisor(lease_fds=[lease.fileno()]) as supervisor,
            supervisor.spawn(["sleep", "600"], cwd="/", env=env),
        ):
            finished = await sh(supervisor, "ls /proc/$$/fd", env)

    assert finished.stdout.split() == [b"0", b"1", b"2"]


async def test_a_program_starts_with_default_signals_in_a_session_of_its_own(
    supervisor: Supervisor, env: dict[str, str]
) -> None:
    async with supervisor.spawn(["sleep", "600"], cwd="/", env=env) as program:
        unusual = int(status(program.pid)["SigIgn"], 16) | int(status(program.pid)["SigBlk"], 16)
        session = os.getsid(program.pid)

    assert [signum for signum in signal.valid_signals() if unusual >> (signum - 1) & 1] == []
    assert session == program.pid


async def test_signals_for_the_terminal_do_not_end_the_supervisor(supervisor: Supervisor, env: dict[str, str]) -> None:
    async with supervisor.spawn(["cat"], cwd="/", env=env) as program:
        for pid in (monitor := parent(program.pid), parent(monitor)):
            for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                os.kill(pid, signum)

        await program.close_input()

        assert (await program.wait()).code == 0


async def test_arguments_and_environment_arrive_as_the_bytes_they_are(supervisor: Supervisor, tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "NAME": "h\u00f6\udcff"}

    finished = await run(
        supervisor.spawn,
        ["sh", "-c", 'echo "$NAME"; echo "$1"; pwd', "sh", "\udcfe"],
        cwd=str(tmp_path),
        env=env,
        limit=60,
    )

    assert finished.stdout == b"h\xc3\xb6\xff\n\xfe\n" + bytes(tmp_path) + b"\n"


async def test_a_program_is_found_on_the_path_that_it_gets(supervisor: Supervisor, tmp_path: Path) -> None:
    (program := tmp_path / "greet").write_text("#!/bin/sh\necho hello $*\n")
    program.chmod(0o755)

    finished = await run(supervisor.spawn, ["greet", "you"], cwd="/", env={"PATH": str(tmp_path)}, limit=60)

    assert finished.stdout == b"hello you\n"


async def test_a_hundred_programs_run_at_once(supervisor: Supervisor, env: dict[str, str]) -> None:
    codes = set()

    async def converse(code: int) -> None:
        async with supervisor.spawn(["sh", "-c", "read code; exit $code"], cwd="/", env=env) as program:
            running.add(code)
            if len(running) == 100:
                everyone.set()
            await everyone.wait()
            await program.write(f"{code}\n".encode())
            codes.add((await program.wait()).code)

    running: set[int] = set()
    everyone = anyio.Event()
    async with anyio.create_task_group() as tasks:
        for code in range(100):
            tasks.start_soon(converse, code)

    assert codes == set(range(100))


@pytest.mark.parametrize(
    ("argv", "cwd", "reason", "hint"),
    [
        ("no-such-program", "", "No such file or directory", 'install "no-such-program"'),
        ("./plain", "", "Permission denied", 'chmod +x "./plain"'),
        ("true", "missing", "No such file or directory", "mkdir -p"),
    ],
)
async def test_a_program_that_cannot_be_started_is_named(
    supervisor: Supervisor, env: dict[str, str], tmp_path: Path, argv: str, cwd: str, reason: str, hint: str
) -> None:
    (tmp_path / "plain").write_text("")

    with pytest.raises(HostError) as caught:
        async with supervisor.spawn([argv], cwd=str(tmp_path / cwd), env=env):
            pass

    assert caught.value.message == f'"{argv}" could not be started in "{tmp_path / cwd}": {reason}'
    assert hint in caught.value.hint


async def test_no_descriptor_is_left_behind(env: dict[str, str]) -> None:
    before = descriptors(os.getpid())

    async with Supervisor() as supervisor:
        await sh(supervisor, "echo", env)
        with suppress(HostError):
            await run(supervisor.spawn, ["no-such-program"], cwd="/", env=env, limit=None)

    assert descriptors(os.getpid()) == before


async def test_an_identity_lives_as_long_as_its_process(supervisor: Supervisor, env: dict[str, str]) -> None:
    async with supervisor.spawn(["sleep", "600"], cwd="/", env=env) as program:
        recorded = identity(program.pid)
        assert recorded is not None
        assert alive(recorded)

    assert not alive(recorded)
    assert identity(program.pid) is None


def test_a_later_process_with_the_same_number_is_not_taken_for_the_recorded_one() -> None:
    mine = identity(os.getpid())
    assert mine is not None

    assert alive(mine)
    assert not alive(ProcessIdentity(pid=mine.pid, started=mine.started - 1, boot=mine.boot))
    assert not alive(ProcessIdentity(pid=mine.pid, started=mine.started, boot="another"))


def test_a_zombie_is_not_alive() -> None:
    child = subprocess.Popen(["true"])

    with child:
        eventually(lambda: identity(child.pid) is None)
