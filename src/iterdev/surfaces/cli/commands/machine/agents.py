"""iterdev agents, and agents check, which tries the real coding agents against a scripted model."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from iterdev.app import agents as app_agents
from iterdev.app.agents import KNOWN_AGENTS, AgentView
from iterdev.conformance.scenarios import SCENARIOS
from iterdev.conformance.verdict import AgentReport, ScenarioResult
from iterdev.core.errors import HostError, UserError, did_you_mean
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.extras import install_command
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_either, print_warning

CELLS = {"ok": "ok", "explained": "miss", "failed": "FAILED"}
WIDTH = max(len(scenario.name) for scenario in SCENARIOS) + 2


@click.group(cls=CommandGroup, invoke_without_command=True, help="List the coding agents, and whether they can be used")
@arguments.as_json
@click.pass_context
def agents(context: click.Context, *, as_json: bool) -> None:
    if context.invoked_subcommand:
        return
    views = app_agents.agents(Path.cwd())
    lines = (f"{view.name:<12} {view.kind:<9} {view.version:<10} {_standing(view)}" for view in views)
    print_either("\n".join(lines), {"agents": views}, as_json=as_json)


def _standing(view: AgentView) -> str:
    if view.usable:
        return f"usable; {view.note}" if view.note else "usable"
    return f"not usable: {view.problem}" + (f"; hint: {view.hint}" if view.hint else "")


def _complete_agent(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in KNOWN_AGENTS if name.startswith(incomplete)]


@agents.command(help="Test the installed agents, or only NAME, with a scripted model")
@click.argument("name", required=False, shell_complete=_complete_agent)
@arguments.as_json
@click.pass_context
def check(context: click.Context, *, name: str | None, as_json: bool) -> ExitCode:
    """0 when all is as expected, or known and explained; 1 when a scenario failed."""
    if name is not None and name not in KNOWN_AGENTS:
        hint = f"agents that can be checked: {', '.join(KNOWN_AGENTS)}"
        raise UserError(f'The agent "{name}" cannot be checked{did_you_mean(name, KNOWN_AGENTS)}', hint=hint)
    checked = _check_agents([name] if name else KNOWN_AGENTS)
    tried = [agent for agent in checked if agent.installed]
    if not tried:
        message = f'The agent "{name}" is not installed' if name else "No coding agent is installed"
        raise HostError(message, hint=checked[0].hint)
    failed = any(agent.failed for agent in tried)
    # The option may stand before `check` too, where it means the same.
    as_json = as_json or (context.parent is not None and context.parent.params["as_json"])
    document = {"agents": checked, "as_expected": not failed}
    print_either("\n".join(_page(checked, tried)), document, as_json=as_json)
    return ExitCode.unfinished if failed else ExitCode.finished


def _check_agents(names: Sequence[str]) -> tuple[AgentReport, ...]:
    try:
        from iterdev.conformance.run import check as check_agents  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name not in {"starlette", "uvicorn"}:
            raise
        raise HostError("The conformance kit is not installed", hint=install_command("conformance")) from error
    return check_agents(names, _show_progress)


def _show_progress(agent: str, result: ScenarioResult) -> None:
    words = "; ".join(result.misses) if result.standing == "failed" else result.behaviour
    line = f"{agent:<9} {result.scenario:<{WIDTH}} {CELLS[result.standing]:<6} {result.seconds:5.1f} s  {words}"
    print_warning(line.rstrip())


def _page(checked: Sequence[AgentReport], tried: Sequence[AgentReport]) -> Iterator[str]:
    yield " " * WIDTH + "  ".join(f"{agent.agent:<8}" for agent in tried).rstrip()
    for row, scenario in enumerate(SCENARIOS):
        cells = (CELLS[agent.results[row].standing] for agent in tried)
        yield f"{scenario.name:<{WIDTH}}" + "  ".join(f"{cell:<8}" for cell in cells).rstrip()
    for agent in checked:
        yield ""
        yield from _about(agent)


def _about(agent: AgentReport) -> Iterator[str]:
    if not agent.installed:
        yield f"{agent.agent}: not installed; hint: {agent.hint}"
        return
    yield f"{agent.agent} {agent.version}" + (f" ({agent.note})" if agent.note else "")
    for result in agent.results:
        match result.standing:
            case "failed":
                yield f"  FAILED {result.scenario}: {'; '.join(result.misses)}"
            case "explained":
                yield f"  miss   {result.scenario}: {'; '.join(result.misses)}"
                yield f"         {agent.agent}: {result.behaviour}"
                yield f"         iterdev: {result.reaction}"
            case "ok" if result.news:
                yield f"  news   {result.scenario}: {result.news}"
            case "ok":
                pass
