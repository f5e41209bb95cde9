"""iterdev skill."""

from collections.abc import Sequence
from pathlib import Path

import click

from iterdev.app.clients import install as clients
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_either, print_text

client_option = click.option(
    "--client",
    "names",
    multiple=True,
    type=click.Choice([*clients.ClientName, "all"]),
    help="For this client; repeatable  [default: those that are installed]",
)
scope_option = click.option(
    "--scope",
    type=click.Choice(list(clients.Scope)),
    default=clients.Scope.user,
    show_default=True,
    help="For you in every repository, or for everybody in this one",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Only list what would be done")
WORDS = {
    "create": "create",
    "change": "change",
    "keep": "is already installed",
    "leave": "left alone, because you changed it",
    "remove": "remove",
}
NEXT = "Restart your coding agent, and type /team-iterdev (Codex: $team-iterdev)."
ASKS = "It asks you before it calls iterdev, unless you install with --allow."


@click.group(cls=CommandGroup, help="Call the teams from inside your coding agent: /team-iterdev and /team-issue")
def skill() -> None:
    pass


@skill.command(help="Install the skills, and the MCP server behind them, in your coding agents")
@client_option
@scope_option
@click.option("--allow", is_flag=True, help="Let the client start a team, wait and pass on answers without asking you")
@dry_run_option
@arguments.as_json
def install(*, names: tuple[str, ...], scope: str, allow: bool, dry_run: bool, as_json: bool) -> None:
    where = clients.place(clients.Scope(scope), Path.cwd(), allow=allow)
    chosen = clients.chosen(names)
    planned = clients.plan_install(chosen, where)
    if not as_json:
        _print_steps(planned)
    done = planned if dry_run else clients.install(chosen, where)
    text = "Nothing was written." if dry_run else NEXT if allow else f"{NEXT}\n{ASKS}"
    print_either(text, {"steps": done, "dry_run": dry_run}, as_json=as_json)


@skill.command(help="Show in which coding agents the skills are installed")
@scope_option
@arguments.as_json
def status(*, scope: str, as_json: bool) -> None:
    found = clients.status(clients.place(clients.Scope(scope), Path.cwd()))
    print_either("\n".join(map(_line, found)), {"clients": found}, as_json=as_json)


@skill.command(help="Remove what was installed; files that you changed stay")
@client_option
@scope_option
@dry_run_option
@arguments.as_json
def remove(*, names: tuple[str, ...], scope: str, dry_run: bool, as_json: bool) -> None:
    where = clients.place(clients.Scope(scope), Path.cwd(), allow=True)
    chosen = clients.chosen(names or ("all",))
    planned = clients.plan_removal(chosen, where)
    if not as_json:
        _print_steps(planned)
    done = planned if dry_run else clients.remove(chosen, where)
    removed = not dry_run and any(step.action == "remove" for step in done)
    text = "Removed." if removed else "Nothing was removed." if planned else "Nothing is installed."
    print_either(text, {"steps": done, "dry_run": dry_run}, as_json=as_json)


def _print_steps(steps: Sequence[clients.Step]) -> None:
    for step in steps:
        print_text(f"{step.client:<8}  {step.path}  {step.what}: {WORDS[step.action]}")


def _line(found: clients.ClientStatus) -> str:
    machine = "" if found.program else "; the client is not on this machine"
    changed = f"; changed by you: {', '.join(found.changed)}" if found.changed else ""
    problem = f"; {found.problem}" if found.problem else ""
    return f"{found.client:<8}  {found.state}{changed}{problem}{machine}"
