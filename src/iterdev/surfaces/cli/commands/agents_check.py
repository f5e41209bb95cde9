"""agents check: real coding agents, tried against a scripted model, as a table."""

import difflib
import json
from collections.abc import Iterator, Sequence

import click
import msgspec

from iterdev.conformance.run import Checked
from iterdev.conformance.run import check as check_agents
from iterdev.conformance.scenarios import SCENARIOS
from iterdev.conformance.verdict import Judged
from iterdev.core.errors import HostError, UserError
from iterdev.core.settings import KNOWN_AGENTS

CELLS = {"ok": "ok", "explained": "miss", "failed": "FAILED"}
WIDTH = max(len(scenario.name) for scenario in SCENARIOS) + 2


def check(*, name: str | None, as_json: bool) -> int:
    """0 when all is as expected, or known and explained; 1 when a scenario failed."""
    if name is not None and name not in KNOWN_AGENTS:
        raise _unknown(name)
    checked = check_agents([name] if name else KNOWN_AGENTS, _tell)
    tried = [agent for agent in checked if agent.installed]
    if not tried:
        raise HostError(_nobody(name), hint=checked[0].hint)
    failed = any(agent.failed for agent in tried)
    if as_json or _asked_above():
        document = {"agents": msgspec.to_builtins(checked), "as_expected": not failed}
        click.echo(json.dumps(document, ensure_ascii=False))
    else:
        click.echo("\n".join(_page(checked, tried)))
    return 1 if failed else 0


def _asked_above() -> bool:
    """Whether the option stands before `check`, where it means the same."""
    above = click.get_current_context().parent
    return bool(above and above.params.get("as_json"))


def _unknown(name: str) -> UserError:
    near = difflib.get_close_matches(name, KNOWN_AGENTS, 1)
    suggestion = f', did you mean "{near[0]}"?' if near else ""
    return UserError(
        f'How to point the agent "{name}" at a scripted model is not known{suggestion}',
        hint=f"agents that can be checked: {', '.join(KNOWN_AGENTS)}",
    )


def _nobody(name: str | None) -> str:
    return f'The agent "{name}" is not installed' if name else "No coding agent is installed"


def _tell(agent: str, result: Judged) -> None:
    """Progress, for whoever waits; the table follows."""
    words = "; ".join(result.misses) if result.standing == "failed" else result.behaviour
    line = f"{agent:<9} {result.scenario:<{WIDTH}} {CELLS[result.standing]:<6} {result.seconds:5.1f} s  {words}"
    click.echo(line.rstrip(), err=True)


def _page(checked: Sequence[Checked], tried: Sequence[Checked]) -> Iterator[str]:
    yield " " * WIDTH + "  ".join(f"{agent.agent:<8}" for agent in tried).rstrip()
    for row, scenario in enumerate(SCENARIOS):
        cells = (CELLS[agent.results[row].standing] for agent in tried)
        yield f"{scenario.name:<{WIDTH}}" + "  ".join(f"{cell:<8}" for cell in cells).rstrip()
    for agent in checked:
        yield ""
        yield from _about(agent)


def _about(agent: Checked) -> Iterator[str]:
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
