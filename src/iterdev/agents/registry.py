"""The agents by name, made from the configuration. A new adapter needs one entry in `ADAPTERS`.

The adapters are imported when they are used: all commands read the names, and most of them start no agent.
"""
# ruff: noqa: PLC0415 - see above

from collections.abc import Callable, Mapping
from pathlib import Path

from iterdev.agents.acp.programs import PROGRAMS, Program
from iterdev.agents.contract import Agent, UnavailableAgent
from iterdev.core.errors import HostError, UserError, did_you_mean
from iterdev.core.settings import AgentSettings

ADAPTERS = {"claude": "iterdev.agents.claude.agent:ClaudeAgent", "codex": "iterdev.agents.codex.agent:CodexAgent"}
KNOWN_AGENTS = (*ADAPTERS, *PROGRAMS)
"""Coding agents that need no table; one of their names only adjusts them."""


def make(name: str, configured: Mapping[str, AgentSettings], root: Path) -> Agent:
    table = configured.get(name, AgentSettings())
    if name not in {*configured, *KNOWN_AGENTS}:
        raise _unknown(name, configured)
    model, home = table.model or "", _resolve_path(table.home, root) if table.home else ""
    if table.script:
        from iterdev.agents.scripted.agent import ScriptedAgent

        return ScriptedAgent(name, _resolve_path(table.script, root))
    if table.command:
        from iterdev.agents.command import CommandAgent

        return CommandAgent(name, table.command, str(root))
    known = "" if table.acp else table.uses or name
    if known in ADAPTERS:
        import pkgutil

        adapter: Callable[..., Agent] = pkgutil.resolve_name(ADAPTERS[known])
        return adapter(name, model=model, args=table.args, home=home)
    from iterdev.agents.acp.agent import AcpAgent

    row = PROGRAMS[known] if known else Program(command=table.acp)
    return AcpAgent(name, row.command, row, model=model, args=table.args, home=home, root=str(root))


def reads(name: str, configured: Mapping[str, AgentSettings], root: Path) -> tuple[str, ...]:
    """The repository's files with instructions that the agent reads by itself; nothing is known of an unknown one."""
    return make(name, configured, root).reads if name in {*configured, *KNOWN_AGENTS} else ()


def _resolve_path(path: str, root: Path) -> str:
    """A path of the configuration: relative to the checkout, or below the user's home."""
    return str(root / Path(path).expanduser())


def _unknown(name: str, configured: Mapping[str, AgentSettings]) -> UserError:
    known = [*configured, *(agent for agent in KNOWN_AGENTS if agent not in configured)]
    return UserError(f'There is no agent "{name}"{did_you_mean(name, known)}', hint=f"known agents: {', '.join(known)}")


def kind(name: str, configured: Mapping[str, AgentSettings]) -> str:
    """The kind of the agent in one word."""
    table = configured.get(name, AgentSettings())
    words = {"command": table.command, "scripted": table.script, "acp": table.acp}
    return next((word for word, given in words.items() if given), table.uses or "known")


def make_present(
    name: str, configured: Mapping[str, AgentSettings], root: Path, notify: Callable[[str], None] = lambda _: None
) -> Agent:
    """The agent, or an unavailable one if it is not installed; a remark on its version goes to `notify`."""
    agent = make(name, configured, root)
    probe = agent.probe()
    if not probe.installed:
        return UnavailableAgent(name, f"{probe.problem} ({probe.hint})" if probe.hint else probe.problem)
    if probe.note:
        notify(f"{name}: {probe.note}")
    return agent


def make_usable(name: str, configured: Mapping[str, AgentSettings], root: Path) -> Agent:
    """The agent, if it is installed."""
    agent = make(name, configured, root)
    probe = agent.probe()
    if probe.installed:
        return agent
    message, hint = f'The agent "{name}" cannot be used: {probe.problem}', probe.hint
    if name in KNOWN_AGENTS:
        installed = [other for other in KNOWN_AGENTS if make(other, {}, Path()).probe().installed]
        if installed:
            # The hint is a command that can be pasted; the alternative follows as a comment.
            hint += f"  # or use what is installed: --agent {installed[0]}"
        else:
            message = f'No coding agent is installed, and "{name}" is wanted'
    raise HostError(message, hint=hint)
