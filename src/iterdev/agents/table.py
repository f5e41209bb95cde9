"""Which agents there are, by name, and how each is made from the configuration."""

import difflib
from collections.abc import Mapping
from pathlib import Path

from iterdev.agents.command import CommandAgent
from iterdev.agents.contract import Agent
from iterdev.agents.scripted import ScriptedAgent
from iterdev.core.errors import HostError, UserError
from iterdev.core.settings import AgentSettings

KNOWN = ("claude", "codex", "gemini", "qwen", "opencode", "copilot", "goose", "kimi")
"""Coding agents that people use; each needs an adapter to be driven by name."""


def make(name: str, configured: Mapping[str, AgentSettings], root: Path) -> Agent:
    table = configured.get(name)
    if table is None:
        raise _unknown(name, configured)
    if table.script:
        script = Path(table.script)
        return ScriptedAgent(name, str(script if script.is_absolute() else root / script))
    return CommandAgent(name, table.command, str(root))


def make_usable(name: str, configured: Mapping[str, AgentSettings], root: Path) -> Agent:
    """The agent, after a look at whether it can be started at all."""
    agent = make(name, configured, root)
    probe = agent.probe()
    if not probe.installed:
        raise HostError(f'The agent "{name}" cannot be used: {probe.problem}', hint=probe.hint)
    return agent


def _unknown(name: str, configured: Mapping[str, AgentSettings]) -> UserError | HostError:
    if name in KNOWN:
        return HostError(
            f'The agent "{name}" has no adapter in this version',
            hint='name any program as an agent in iterdev.toml: [agents.mine] command = [...], [run] agent = "mine"',
        )
    near = difflib.get_close_matches(name, [*configured, *KNOWN], 1)
    known = ", ".join([*configured, *KNOWN])
    return UserError(
        f'There is no agent "{name}"' + (f', did you mean "{near[0]}"?' if near else ""), hint=f"known agents: {known}"
    )
