"""Real coding agents keep to what iterdev relies on, connect only to the scripted model, and leave nothing running."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.clis import CLIS, OPTIONAL_BINARIES, install

from iterdev.conformance.run import find_leftovers
from iterdev.conformance.scenarios import SCENARIOS

SHUT_OFF = Path(__file__).with_name("shut_off.py")
TURN_TIMEOUT = 600.0
TRIES = 4
UNABLE = 4

RecordProperty = Callable[[str, object], None]


class Machine:
    """A machine without user settings, with one coding agent at most."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("bin", "home", "tmp"):
            (root / folder).mkdir()
        self.env = {
            "PATH": f"{root / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(root / "home"),
            "TMPDIR": str(root / "tmp"),
            "LANG": "C.UTF-8",
        }

    def install(self, name: str) -> bool:
        return install(name, self.root / "bin")

    def shut_off(self, *command: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
        """Runs a command in a network that has nothing but loopback; returns also whom it asked for."""
        mapped = [] if os.geteuid() == 0 else ["--map-root-user"]
        record = self.root / "record.json"
        done = subprocess.run(
            ["unshare", "--net", *mapped, sys.executable, str(SHUT_OFF), str(record), *command],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TURN_TIMEOUT,
            check=False,
        )
        return done, json.loads(record.read_text(encoding="utf-8"))


@pytest.fixture
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    # Not in the folder of the test, whose long name is too much for the path of a socket.
    return Machine(tmp_path_factory.mktemp("m"))


def check(*arguments: str) -> Sequence[str]:
    return (sys.executable, "-m", "iterdev", "agents", "check", *arguments)


def assert_conformant(name: str, machine: Machine, record_property: RecordProperty) -> None:
    done, asked = machine.shut_off(*check(name, "--json"))

    assert done.stdout, done.stderr
    (agent,) = json.loads(done.stdout)["agents"]
    standings = {result["scenario"]: result["standing"] for result in agent["results"]}
    assert list(standings) == [scenario.name for scenario in SCENARIOS]
    assert [result for result in agent["results"] if result["standing"] == "failed"] == []
    assert [result["scenario"] for result in agent["results"] if result["news"]] == []
    assert done.returncode == 0
    assert asked == []
    assert find_leftovers(str(machine.root)) == ()
    assert list((machine.root / "tmp").iterdir()) == []
    misses = list(standings.values()).count("explained")
    record_property("conformance", f"{name} {agent['version']} ({misses} explained misses)")


@pytest.mark.parametrize("name", CLIS)
def test_a_coding_agent_conforms_and_connects_to_no_other_host(
    name: str, machine: Machine, record_property: RecordProperty
) -> None:
    machine.install(name)

    assert_conformant(name, machine, record_property)


@pytest.mark.parametrize("name", OPTIONAL_BINARIES)
def test_a_coding_agent_conforms_where_it_is_installed_and_is_missing_elsewhere(
    name: str, machine: Machine, record_property: RecordProperty
) -> None:
    if machine.install(name):
        assert_conformant(name, machine, record_property)
    else:
        assert_missing(name, machine)
        record_property("conformance", f"{name} not installed, not tested")


def assert_missing(name: str, machine: Machine) -> None:
    done, _ = machine.shut_off(*check(name))

    assert (done.returncode, f'"{name}" is not installed' in done.stderr) == (UNABLE, True)


def test_a_program_that_asks_for_others_is_found_out(machine: Machine) -> None:
    rude = """
import socket
for ask in (
    lambda: socket.getaddrinfo("telemetry.example.com", 443),
    lambda: socket.create_connection(("192.0.2.7", 443)),
    lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"?", ("192.0.2.8", 123)),
):
    try:
        ask()
    except OSError:
        pass
"""

    _, asked = machine.shut_off(sys.executable, "-c", rude)

    assert asked == ["192.0.2.7 port 443", "192.0.2.8 port 123", "the name telemetry.example.com"]


def test_no_process_of_an_agent_is_left_when_iterdev_is_killed(machine: Machine) -> None:
    name = "codex"
    machine.install(name)
    mark = f"{machine.root / 'tmp'}/iterdev-check-"

    assert any(killed_at_work(name, machine, mark) for _ in range(TRIES)), "no shell of the agent was ever seen"

    until(lambda: find_leftovers(mark) == ())


def killed_at_work(name: str, machine: Machine, mark: str) -> bool:
    """On a busy machine the check may be over before the agent's shell was seen."""
    quiet = subprocess.DEVNULL
    with subprocess.Popen(check(name), env=machine.env, cwd=machine.root, stdout=quiet, stderr=quiet) as iterdev:
        until(lambda: iterdev.poll() is not None or any("sleep 600" in line for line in find_leftovers(mark)))
        if iterdev.poll() is not None:
            return False
        iterdev.send_signal(signal.SIGKILL)
    return True


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + TURN_TIMEOUT
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
