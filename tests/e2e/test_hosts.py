"""The commands for more than one machine, as they are typed."""

import json
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from tests import temporal_server
from tests.conftest import Repo
from tests.hosts import hosts_of
from tests.temporal_server import TemporalServer, free_port

RUN = ("run", "-y", "--pipeline", "patch", "Fix the greeting")
REMOTE_MODULES = ("temporalio", "cryptography", "iterdev.execution.temporal.connection")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with temporal_server.running(tmp_path_factory.mktemp("temporal")) as running:
        yield running


@pytest.fixture
def team(repo: Repo, tmp_path: Path) -> Repo:
    """A repository whose attempts are to run on hosts."""
    repo.git("init", "--quiet", "--bare", str(tmp_path / "hub.git"))
    repo.git("remote", "add", "origin", str(tmp_path / "hub.git"))
    with (repo.path / "iterdev.toml").open("a") as file:
        file.write(f'\n[remote]\nengine = "temporal"\nkey = "{tmp_path / "remote.key"}"\n')
    return repo


def refused(done: subprocess.CompletedProcess[str], repo: Repo) -> str:
    """The one sentence with which nothing was begun."""
    sentence, hint = done.stderr.splitlines()
    assert (done.returncode, done.stdout) in [(2, ""), (4, "")]
    assert hint.startswith("hint: ")
    assert json.loads(repo.iterdev("sessions", "--json").stdout)["sessions"] == []
    assert repo.calls() == []
    return sentence


def test_a_new_key_is_written_once_and_never_overwritten(repo: Repo) -> None:
    first = repo.iterdev("key", "new", "remote.key")
    second = repo.iterdev("key", "new", "remote.key", "--json")

    assert first.returncode == 0
    assert "Copy it to every host" in first.stdout
    assert json.loads(second.stdout)["seals"] is False
    assert len((repo.path / "remote.key").read_text().splitlines()) == 3


def test_without_a_key_nothing_is_begun(team: Repo) -> None:
    assert "There is no key at" in refused(team.iterdev(*RUN), team)


def test_without_a_server_nothing_is_begun(team: Repo) -> None:
    team.iterdev("key", "new")

    done = team.iterdev(*RUN, TEMPORAL_ADDRESS=f"127.0.0.1:{free_port()}")

    assert "cannot be reached" in refused(done, team)


def test_in_a_foreign_namespace_nothing_is_begun(team: Repo, server: TemporalServer) -> None:
    team.iterdev("key", "new")

    done = team.iterdev(*RUN, TEMPORAL_ADDRESS=server.address, TEMPORAL_NAMESPACE="foreign")

    assert 'has no namespace "foreign"' in refused(done, team)


def test_without_a_git_remote_nothing_is_begun(team: Repo, server: TemporalServer) -> None:
    team.iterdev("key", "new")
    team.git("remote", "remove", "origin")

    done = team.iterdev(*RUN, TEMPORAL_ADDRESS=server.address)

    assert 'has no remote "origin"' in refused(done, team)


def test_an_order_that_is_too_large_for_a_server_is_refused_and_no_agent_is_asked(
    repo: Repo, server: TemporalServer, tmp_path: Path
) -> None:
    words = " ".join(sha256(str(number).encode()).hexdigest() for number in range(40_000))
    (tmp_path / "tasks.csv").write_text(f"id,title,description,deps\nDEV-001,a,{words},\n")

    with hosts_of(repo, server, "builder"):
        done = repo.iterdev("run", "-y", "--tasks", str(tmp_path / "tasks.csv"), "Do it")

    assert done.returncode == 4
    assert "no message may have more than 1,000,000" in done.stderr
    assert repo.calls() == []


def test_here_needs_no_server(team: Repo) -> None:
    done = team.iterdev(*RUN, "--here")

    assert [call["task"] for call in team.calls()] == ["DEV-001"]
    assert "cannot be reached" not in done.stderr


def test_doctor_looks_at_the_way_to_the_hosts(team: Repo, server: TemporalServer) -> None:
    team.iterdev("key", "new")

    done = team.iterdev("doctor", TEMPORAL_ADDRESS=server.address)

    assert done.returncode == 1
    assert f"ok Temporal at {server.address}, namespace default" in done.stdout
    assert f"ok git remote {team.git('remote', 'get-url', 'origin')}" in done.stdout


def test_a_host_that_offers_nothing_does_not_start(repo: Repo) -> None:
    done = repo.iterdev("worker")

    assert done.returncode == 2
    assert "offers no agent" in done.stderr


def test_there_is_nothing_to_drain_where_no_host_runs(repo: Repo) -> None:
    done = repo.iterdev("worker", "drain")

    assert done.returncode == 2
    assert "No host runs in" in done.stderr


def test_a_run_on_this_machine_loads_nothing_of_it(repo: Repo) -> None:
    program = (
        "import sys\n"
        "from iterdev.surfaces.cli.main import run\n"
        f"run({list(RUN)!r})\n"
        f"print([name for name in {REMOTE_MODULES!r} if name in sys.modules])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=repo.path, env=repo.env, capture_output=True, text=True, check=True
    )

    assert "2 completed" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
