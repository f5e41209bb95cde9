"""What doctor and `iterdev worker --check` find, with a real server and a real git remote."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.app.remote.conftest import host
from tests.conftest import Repo
from tests.temporal_server import TemporalServer

from iterdev.app.doctor import Finding
from iterdev.app.remote.checks import engine_findings, host_findings
from iterdev.core.host_settings import HostAgentSettings, HostRepository, HostSettings
from iterdev.engine.repository import Repository
from iterdev.execution.temporal.keys import add_key

pytestmark = pytest.mark.anyio


@pytest.fixture
def team(repo: Repo, server: TemporalServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repo:
    """A repository whose attempts run on hosts, with a key and a git remote that the hosts can reach."""
    add_key(str(tmp_path / "remote.key"))
    repo.git("init", "--quiet", "--bare", str(tmp_path / "hub.git"))
    repo.git("remote", "add", "origin", str(tmp_path / "hub.git"))
    repo.write("iterdev.toml", f'[remote]\nengine = "temporal"\nkey = "{tmp_path / "remote.key"}"\n')
    monkeypatch.setenv("TEMPORAL_ADDRESS", server.address)
    return repo


async def problems(found: AsyncIterator[Finding]) -> dict[str, Finding]:
    """By subject; the server of the tests forgets quickly."""
    return {one.subject: one async for one in found if one.problem and one.subject != "retention"}


async def test_a_team_with_a_host_for_its_agent_is_healthy(team: Repo, server: TemporalServer, tmp_path: Path) -> None:
    async with host(server, tmp_path / "remote.key", "healthy", agent_1=2):
        found = [one async for one in engine_findings(Repository(team.path), {"agent_1"})]

    assert [one for one in found if one.problem and one.subject != "retention"] == []
    assert "agent agent_1 on healthy" in [one.subject for one in found]
    assert team.git("ls-remote", "origin") == ""


async def test_a_server_that_forgets_too_soon_is_a_finding(team: Repo) -> None:
    found = {one.subject: one async for one in engine_findings(Repository(team.path), ())}

    assert found["retention"].problem == "the server forgets after 24 h how an attempt ended"
    assert "temporal operator namespace update --namespace default --retention 7d" in found["retention"].hint


async def test_an_agent_that_no_host_offers_is_a_finding(team: Repo) -> None:
    found = await problems(engine_findings(Repository(team.path), {"agent_2"}))

    assert found["agent agent_2"].hint.startswith("iterdev worker --agent agent_2=1")


async def test_a_host_with_another_key_is_found(team: Repo, server: TemporalServer, tmp_path: Path) -> None:
    other = tmp_path / "other.key"
    add_key(str(other))

    async with host(server, other, "stranger", agent_3=1):
        found = await problems(engine_findings(Repository(team.path), {"agent_3"}))

    assert list(found) == ["agent agent_3 on stranger"]
    assert "is sealed with the key" in found["agent agent_3 on stranger"].problem


async def test_a_host_of_another_version_of_the_messages_is_a_finding(
    team: Repo, server: TemporalServer, tmp_path: Path
) -> None:
    async with host(server, tmp_path / "remote.key", "older", wire=0, agent_4=1):
        found = await problems(engine_findings(Repository(team.path), {"agent_4"}))

    assert "speaks version 0 of the messages, this one 1" in found["host older"].problem
    assert found["agent agent_4"].problem


async def test_a_remote_that_refuses_other_refs_than_branches_is_a_finding(team: Repo, tmp_path: Path) -> None:
    hook = tmp_path / "hub.git" / "hooks" / "update"
    hook.write_text("#!/bin/sh\ncase $1 in refs/heads/*) ;; *) exit 1 ;; esac\n")
    hook.chmod(0o755)

    found = await problems(engine_findings(Repository(team.path), ()))

    assert "refuses refs under refs/iterdev/" in found["git remote"].problem


async def test_without_a_git_remote_the_configuration_is_named(team: Repo) -> None:
    team.git("remote", "remove", "origin")

    found = await problems(engine_findings(Repository(team.path), ()))

    assert 'has no remote "origin"' in found["git remote"].problem


async def test_a_host_that_can_work_is_healthy(team: Repo, tmp_path: Path) -> None:
    settings = HostSettings(
        name="builder-1",
        key=str(tmp_path / "remote.key"),
        agents={"mine": HostAgentSettings(command=("sh",), slots=2)},
        repositories={str(tmp_path / "hub.git"): HostRepository()},
    )

    found = [one async for one in host_findings(settings)]

    assert [one for one in found if one.problem] == []
    assert any(one.subject.startswith("agent mine") and one.subject.endswith("slots: 2") for one in found)


async def test_everything_that_a_host_lacks_is_named(team: Repo, tmp_path: Path) -> None:
    settings = HostSettings(
        name="builder-1",
        key=str(tmp_path / "remote.key"),
        agents={"mine": HostAgentSettings(command=("no-such-program",))},
        repositories={str(tmp_path / "nowhere.git"): HostRepository(), "url": HostRepository(belongings="/none/such")},
    )

    found = await problems(host_findings(settings))

    assert len(found) == 3
    assert found["repository url"].hint == "mkdir -p /none/such"


async def test_a_host_without_agents_and_repositories_says_how_to_add_them(team: Repo, tmp_path: Path) -> None:
    found = await problems(host_findings(HostSettings(key=str(tmp_path / "remote.key"))))

    assert found["agents"].hint == "iterdev worker --agent claude=1"
    assert "refuses every order" in found["repositories"].problem
