"""The agents by name, made from the configuration. A new adapter needs its name and one `case` here."""

import difflib
from collections.abc import Callable, Mapping
from pathlib import Path

from iterdev.agents.acp.programs import PROGRAMS, Program
from iterdev.agents.command import CommandAgent
from iterdev.agents.contract import Agent, Probe
from iterdev.agents.scripted.agent import ScriptedAgent
from iterdev.agents.unavailable import UnavailableAgent
from iterdev.core.errors import HostError, UserError
from iterdev.core.settings import AgentSettings

KNOWN_AGENTS = ("claude", "codex", *PROGRAMS)
"""Coding agents that need no table; a table with one of their names only adjusts it."""


def make(name: str, configured: Mapping[str, AgentSettings], root: Path) -> Agent:
    table = configured.get(name, AgentSettings())
    if name not in {*configured, *KNOWN_AGENTS}:
        raise _unknown(name, configured)
    if table.script:
        return ScriptedAgent(name, _resolve_path(table.script, root))
    if table.command:
        return CommandAgent(name, table.command, str(root))
    return _make_adapter(name, table, root)


def kind(name: str, configured: Mapping[str, AgentSettings]) -> str:
    """The kind of the agent in one word."""
    table = configured.get(name, AgentSettings())
    words = {"command": table.command, "scripted": table.script, "acp": table.acp}
    return next((word for word, given in words.items() if given), table.uses or "known")


# Adapters are imported when they are used, so that a command agent starts without them.


def _make_adapter(name: str, table: AgentSettings, root: Path) -> Agent:
    known = "" if table.acp else table.uses or name
    model, home = table.model or "", _resolve_path(table.home, root) if table.home else ""
    match known:
        case "claude":
            from iterdev.agents.claude.agent import ClaudeAgent  # noqa: PLC0415 - see above

            return ClaudeAgent(name, model=model, args=table.args, home=home)
        case "codex":
            from iterdev.agents.codex.agent import CodexAgent  # noqa: PLC0415 - see above

            return CodexAgent(name, model=model, args=table.args, home=home)
        case _:
            from iterdev.agents.acp.agent import AcpAgent  # noqa: PLC0415 - see above

            row = PROGRAMS[known] if known else Program(command=table.acp)
            return AcpAgent(name, row.command, row, model=model, args=table.args, home=home, root=str(root))


def _resolve_path(path: str, root: Path) -> str:
    """A path of the configuration: relative to the checkout, or below the user's home."""
    return str(root / Path(path).expanduser())


def make_present(
    name: str, configured: Mapping[str, AgentSettings], root: Path, tell: Callable[[str], None] = lambda _: None
) -> Agent:
    """The agent, or an unavailable one if it is not installed; a remark on its version goes to `tell`."""
    agent = make(name, configured, root)
    probe = agent.probe()
    if not probe.installed:
        return UnavailableAgent(name, f"{probe.problem} ({probe.hint})" if probe.hint else probe.problem)
    if probe.note:
        tell(f"{name}: {probe.note}")
    return agent


def make_usable(name: str, configured: Mapping[str, AgentSettings], root: Path) -> Agent:
    """The agent, if it is installed."""
    agent = make(name, configured, root)
    probe = agent.probe()
    if not probe.installed:
        raise _unusable(name, probe)
    return agent


def _unusable(name: str, probe: Probe) -> HostError:
    """The hint is a command that can be pasted; the alternative follows as a comment."""
    message = f'The agent "{name}" cannot be used: {probe.problem}'
    if name not in KNOWN_AGENTS:
        return HostError(message, hint=probe.hint)
    installed = [other for other in KNOWN_AGENTS if make(other, {}, Path()).probe().installed]
    if not installed:
        return HostError(f'No coding agent is installed, and "{name}" is wanted', hint=probe.hint)
    return HostError(message, hint=f"{probe.hint}  # or use what is installed: --agent {installed[0]}")


def _unknown(name: str, configured: Mapping[str, AgentSettings]) -> UserError:
    known = [*configured, *(agent for agent in KNOWN_AGENTS if agent not in configured)]
    near = difflib.get_close_matches(name, known, 1)
    return UserError(
        f'There is no agent "{name}"' + (f', did you mean "{near[0]}"?' if near else ""),
        hint=f"known agents: {', '.join(known)}",
    )
