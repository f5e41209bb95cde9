"""iterdev hosts."""

from pathlib import Path

import click

from iterdev.app.remote import hosts as app_hosts
from iterdev.app.remote.hosts import HostsView, HostView
from iterdev.surfaces.cli import arguments, event_loop
from iterdev.surfaces.cli.output.console import print_either


@click.command(help="List the hosts that run attempts: agents, busy and all slots, version, last seen")
@arguments.as_json
def hosts(*, as_json: bool) -> None:
    view = event_loop.run(app_hosts.hosts, Path.cwd())
    print_either(_text(view), view, as_json=as_json)


def _text(view: HostsView) -> str:
    if not view.hosts:
        where = f"{view.address}, namespace {view.namespace}"
        return f"No host is at {where}; start one with `iterdev worker`, and try again after a few seconds"
    width = max(len(host.name) for host in view.hosts)
    return "\n".join(f"{host.name:<{width}}  {_line(host)}" for host in view.hosts)


def _line(host: HostView) -> str:
    agents = ", ".join(f"{one.agent} {one.busy}/{one.slots}" for one in host.agents)
    notes = ["draining"] if host.drains else []
    notes += [] if host.compatible else ["speaks another version of the messages: it gets no work from here"]
    return "  ".join([agents, f"iterdev {host.version or '?'}", f"seen {host.seen:.0f} s ago", *notes])
