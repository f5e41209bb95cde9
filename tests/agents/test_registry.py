"""Agents by name: the known ones, the configured ones, and what is said when one cannot be used."""

from pathlib import Path

import pytest

from iterdev.agents.acp.agent import AcpAgent
from iterdev.agents.acp.programs import PROGRAMS, Program
from iterdev.agents.claude.agent import ClaudeAgent
from iterdev.agents.codex.agent import CodexAgent
from iterdev.agents.command import CommandAgent
from iterdev.agents.registry import KNOWN_AGENTS, kind, make, make_present, make_usable
from iterdev.agents.scripted.agent import ScriptedAgent
from iterdev.core.errors import HostError, UserError
from iterdev.core.settings import AgentSettings

ROOT = Path("/checkout")


def program(folder: Path, name: str, version: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho {version}\n", encoding="utf-8")
    path.chmod(0o755)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are looked for."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("name", KNOWN_AGENTS)
def test_a_known_agent_needs_no_table_and_brings_its_variables(name: str) -> None:
    agent = make(name, {}, ROOT)

    assert agent.name == name
    assert any(variable.endswith(("KEY", "TOKEN")) for variable in agent.needs)
    assert kind(name, {}) == "known"


def test_a_table_of_a_known_name_only_adjusts_it() -> None:
    adjusted = AgentSettings(model="haiku", args=("--debug",), home="private")

    assert make("claude", {"claude": adjusted}, ROOT) == ClaudeAgent(
        "claude", model="haiku", args=("--debug",), home="/checkout/private"
    )
    assert make("codex", {"codex": adjusted}, ROOT) == CodexAgent(
        "codex", model="haiku", args=("--debug",), home="/checkout/private"
    )
    assert make("qwen", {"qwen": adjusted}, ROOT) == AcpAgent(
        "qwen",
        ("qwen", "--acp"),
        PROGRAMS["qwen"],
        model="haiku",
        args=("--debug",),
        home="/checkout/private",
        root="/checkout",
    )


def test_a_known_agent_can_have_other_names() -> None:
    configured = {"fast": AgentSettings(uses="claude", model="haiku"), "second": AgentSettings(uses="gemini")}

    assert make("fast", configured, ROOT) == ClaudeAgent("fast", model="haiku")
    assert make("second", configured, ROOT) == AcpAgent(
        "second", ("gemini", "--acp"), PROGRAMS["gemini"], root="/checkout"
    )
    assert [kind(name, configured) for name in configured] == ["claude", "gemini"]


def test_any_program_can_be_an_agent_also_under_a_known_name() -> None:
    configured = {
        "mine": AgentSettings(command=("./mine",)),
        "played": AgentSettings(script="script.toml"),
        "codex": AgentSettings(acp=("codex-acp", "-v"), model="large"),
    }

    assert make("mine", configured, ROOT) == CommandAgent("mine", ("./mine",), "/checkout")
    assert make("played", configured, ROOT) == ScriptedAgent("played", "/checkout/script.toml")
    assert make("codex", configured, ROOT) == AcpAgent(
        "codex", ("codex-acp", "-v"), Program(command=("codex-acp", "-v")), model="large", root="/checkout"
    )
    assert [kind(name, configured) for name in configured] == ["command", "scripted", "acp"]
    assert [make(name, configured, ROOT).needs for name in configured] == [(), (), ()]


def test_a_home_may_be_below_the_users_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/mila")

    assert make("claude", {"claude": AgentSettings(home="~/work")}, ROOT) == ClaudeAgent(home="/home/mila/work")


def test_an_unknown_name_is_an_error_of_the_user_with_the_nearest_one() -> None:
    with pytest.raises(UserError, match=r'no agent "cladue" \(did you mean "claude"\?\)') as caught:
        make("cladue", {"mine": AgentSettings(command=("x",))}, ROOT)

    assert caught.value.hint.startswith("known agents: mine, claude, codex")


def test_a_missing_agent_comes_with_a_command_to_install_it_and_one_that_is_there(programs: Path) -> None:
    program(programs, "codex", "0.100.0")

    with pytest.raises(HostError, match='"claude" cannot be used') as caught:
        make_usable("claude", {}, ROOT)

    assert caught.value.hint == ("npm install -g @anthropic-ai/claude-code  # or use what is installed: --agent codex")


@pytest.mark.usefixtures("programs")
def test_without_any_agent_the_one_that_is_wanted_is_to_be_installed() -> None:
    with pytest.raises(HostError, match="No coding agent is installed") as caught:
        make_usable("gemini", {}, ROOT)

    assert caught.value.hint == "npm install -g @google/gemini-cli"


@pytest.mark.parametrize("name", KNOWN_AGENTS)
def test_a_version_newer_than_the_known_one_is_used_and_noted(programs: Path, name: str) -> None:
    program(programs, name, "99.0.1")
    notes: list[str] = []

    agent = make_present(name, {}, ROOT, notify=notes.append)

    assert agent.name == name
    (note,) = notes
    assert note.startswith(f"{name}: version 99.0.1 is newer than ")
