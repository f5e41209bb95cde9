"""A sprint whose real coding agents work on two hosts, in the sandbox, through a real Temporal server."""

from pathlib import Path

import pytest
from msgspec.structs import replace
from tests import temporal_server
from tests.clis import find_cli
from tests.conftest import Repo, make_repo
from tests.e2e.coding.conftest import KEY, PATIENCE, script
from tests.e2e.conftest import repository_bytes
from tests.hosts import Hosts, hosts_of, journal_of
from tests.session_files import left_behind, messages, statuses

from iterdev.agents.contract import TOOLS
from iterdev.agents.scripted.script import Call, Script, Step
from iterdev.conformance.agent_setup import variables
from iterdev.conformance.model.server import ModelServer, serving
from iterdev.conformance.run import find_leftovers
from iterdev.core.session.events import AttemptPlaced, AttemptStarted

pytestmark = pytest.mark.temporal

SETTINGS = """
[run]
agent = "claude"
sandbox = true

[project]
test = "python3 -m unittest -q"

[roles.reviewer]
agent = "codex"
"""
HOST_OF = {
    **dict.fromkeys(("DESIGN-001", "DEV-001", "VERIFY-001", "DEV-fix-1"), "one"),
    **dict.fromkeys(("REVIEW-001", "REVIEW-002"), "two"),
}
ESCAPE = """
(cat {secrets}; ls -A $HOME; echo harm | tee {targets}) > seen.txt 2>&1; true
"""
TELL = {"operation": "log", "type": "progress", "summary": "told from a host"}


@pytest.fixture
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    # Not in the folder of the test, whose long name is too much for the path of a socket.
    repo = make_repo(tmp_path_factory.mktemp("s"))
    repo.write("iterdev.toml", SETTINGS)
    return repo


def start(hosts: Hosts, name: str, agent: str, model: ModelServer) -> None:
    """Starts a host with one coding agent, and with a login of it that the engine's machine does not have."""
    programs = hosts.root / name / "bin"
    programs.mkdir(parents=True)
    (programs / agent).symlink_to(find_cli(agent).resolve())
    (hosts.root / name / f".{agent}").mkdir()
    path = f"{programs}:{hosts.repo.env['PATH']}"
    hosts.start(name, agent=agent, PATH=path, **variables(agent, model.url, KEY))


def escaping(hosts: Hosts) -> Script:
    """The script of a sprint whose developer first tries to read and write what is not its own, and tells the team."""
    own = hosts.root / "one"
    secrets = f"{hosts.key} {own}/.config/iterdev/host.toml {own}/iterdev/host/orders/*"
    run = ESCAPE.format(secrets=secrets, targets=" ".join(map(str, targets(hosts))))
    first = (Step(run=run), Step(call=Call(tool="team_msg", server=TOOLS, arguments=TELL)))
    rules = script("sprint").rules
    return Script(rules=tuple(replace(one, steps=first + one.steps) if one.task == "DEV-001" else one for one in rules))


def targets(hosts: Hosts) -> list[Path]:
    folders = (hosts.repo.path, hosts.root / "one", hosts.root / "one" / "iterdev", Path(hosts.remote))
    return [folder / "harm" for folder in folders]


def test_a_sprint_of_claude_and_codex_runs_in_the_sandboxes_of_two_hosts(
    repo: Repo, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with temporal_server.running(tmp_path_factory.mktemp("t")) as server, hosts_of(repo, server) as hosts:
        before = repository_bytes(repo)
        with serving(escaping(hosts)) as model:
            start(hosts, "one", "claude", model)
            start(hosts, "two", "codex", model)
            hosts.wait()

            done = repo.iterdev("run", "-y", "--pipeline", "sprint", "Greet people", timeout=PATIENCE)

            hosts.stop()
    left = left_behind(repo) + list(find_leftovers(str(hosts.root)))

    folder = repo.folder()
    branch = f"iterdev/{folder.name}"
    assert done.returncode == 0, done.stdout + done.stderr + hosts.log("one") + hosts.log("two")
    assert set(statuses(folder).values()) == {"completed"}
    assert "REVIEW-002 completed: score 9, CONVERGED" in done.stdout
    assert "VERIFY-001 completed: Pass rate 100.0% of 1 test" in done.stdout
    assert repo.git("show", f"{branch}:greeting.py") == "def greet(name):\n    return 'Hello, ' + name"
    assert repo.git("log", "--format=%an", f"main..{branch}").splitlines() == ["developer (claude)"] * 2
    assert {event.task: event.host for event in journal_of(repo, AttemptPlaced)} == HOST_OF
    assert all(event.where.startswith("temporal/") for event in journal_of(repo, AttemptStarted))
    assert "[developer] told from a host" in messages(folder, "progress")
    assert repository_bytes(repo) == before
    assert left == []
    seen = repo.git("show", f"{branch}:seen.txt")
    assert Path(hosts.key).read_text().strip() not in seen
    assert "No such file" in seen
    assert [file for file in targets(hosts) if file.exists()] == []
