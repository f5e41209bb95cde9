"""iterdev worker."""

from collections.abc import AsyncIterator

import click

from iterdev.app.doctor import Finding
from iterdev.app.remote import checks, service
from iterdev.app.remote import worker as app_worker
from iterdev.app.remote.host_file import HostSettings, host_file, read_host_settings
from iterdev.surfaces.cli import arguments, event_loop
from iterdev.surfaces.cli.commands.machine.doctor import finding_lines
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_document, print_either, print_line, print_text


@click.group(
    cls=CommandGroup,
    invoke_without_command=True,
    help="Serve as a host: run attempts for engines on other machines, as host.toml says",
)
@click.option("--agent", "slots", multiple=True, metavar="NAME=SLOTS", help="Offer only this agent; repeatable")
@click.option("--check", is_flag=True, help="Only check whether this host can work; exits with 0 or 1")
@arguments.as_json
@click.pass_context
def worker(context: click.Context, *, slots: tuple[str, ...], check: bool, as_json: bool) -> ExitCode:
    if context.invoked_subcommand:
        return ExitCode.finished
    settings = read_host_settings(host_file(), slots)
    if check:
        return _checked(settings, as_json=as_json)
    event_loop.run(app_worker.serve, settings, print_line)
    return ExitCode.finished


def _checked(settings: HostSettings, *, as_json: bool) -> ExitCode:
    async def look(findings: AsyncIterator[Finding]) -> list[Finding]:
        found = []
        async for finding in findings:
            found.append(finding)
            if not as_json:
                print_text(finding_lines(finding))
        return found

    found = event_loop.run(look, checks.host_findings(settings))
    healthy = not any(finding.problem for finding in found)
    if as_json:
        print_document({"healthy": healthy, "host": settings.name, "findings": found})
    return ExitCode.finished if healthy else ExitCode.unfinished


@worker.command(help="Write a systemd unit that runs this host, with the --agent options given before `install`")
@arguments.as_json
@click.pass_context
def install(context: click.Context, *, as_json: bool) -> None:
    slots = context.parent.params["slots"] if context.parent else ()
    # What is wrong with them is said now, and not by a service that starts again and again.
    read_host_settings(host_file(), slots)
    unit = service.install(slots)
    print_either(f"Wrote {unit.file}\nStart it with: {unit.start}", unit, as_json=as_json)


@worker.command(help="Let this machine's host finish its running attempts, take no new ones, and end")
@arguments.as_json
def drain(*, as_json: bool) -> None:
    process = app_worker.drain()
    print_either(f"The host (process {process}) takes no more attempts", {"process": process}, as_json=as_json)
