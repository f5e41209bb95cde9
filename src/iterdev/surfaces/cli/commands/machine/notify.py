"""iterdev notify: messages about what needs the user."""

from pathlib import Path

from iterdev.app.live.notify import try_channels
from iterdev.surfaces.cli import arguments, event_loop
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_alert, print_either

notify = CommandGroup("notify", help="Test the configured notifications")


@notify.command(help="Send a test message through each channel of [notify]; exits with 1 if one fails")
@arguments.as_json
def test(*, as_json: bool) -> ExitCode:
    tried = event_loop.run(try_channels, Path.cwd(), print_alert)
    lines = [f"{one.channel}: {one.error or 'sent'}" for one in tried]
    print_either("\n".join(lines), {"channels": tried}, as_json=as_json)
    return ExitCode.unfinished if any(one.error for one in tried) else ExitCode.finished
