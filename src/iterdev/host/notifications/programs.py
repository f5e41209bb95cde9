"""Messages by programs: the desktop's own, and one of the user's."""

import html
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from iterdev.core.errors import HostError
from iterdev.core.views.notifications import Notification
from iterdev.host import clock
from iterdev.host.processes.spawn import Spawn, run
from iterdev.host.secrets import allowed_environment

SECONDS = 5.0
DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XAUTHORITY")
"""The variables by which a program finds the user's desktop."""
APPLESCRIPT = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


class _ProgramChannel:
    def __init__(self, spawn: Spawn, folder: Path, environment: Mapping[str, str], also: Sequence[str] = ()) -> None:
        self._spawn, self._folder = spawn, folder
        self._variables = allowed_environment(environment, (*DESKTOP, *also))

    async def _run(self, argv: Sequence[str], stdin: bytes = b"") -> None:
        ended = await run(self._spawn, argv, cwd=str(self._folder), env=self._variables, limit=SECONDS, stdin=stdin)
        if ended.timed_out:
            raise HostError(f'"{argv[0]}" did not end within {SECONDS:g} s')
        if ended.code:
            said = ended.stderr.decode("utf-8", "replace").strip().splitlines()
            raise HostError(f'"{argv[0]}" ended with {ended.code}{f": {said[-1]}" if said else ""}')


class DesktopChannel(_ProgramChannel):
    name = "desktop"

    def __init__(self, spawn: Spawn, folder: Path, environment: Mapping[str, str], platform: str) -> None:
        super().__init__(spawn, folder, environment)
        self._is_mac = platform == "darwin"

    async def send(self, notification: Notification) -> None:
        if self._is_mac:
            script = [word for line in APPLESCRIPT for word in ("-e", line)]
            await self._run(("osascript", *script, notification.title, notification.lines))
            return
        # The text may have marks of HTML.
        text = html.escape(notification.lines, quote=False)
        await self._run(("notify-send", "--app-name=iterdev", "--", notification.title, text))


class CommandChannel(_ProgramChannel):
    name = "command"

    def __init__(
        self,
        command: Sequence[str],
        spawn: Spawn,
        folder: Path,
        environment: Mapping[str, str],
        also: Sequence[str] = (),
    ) -> None:
        super().__init__(spawn, folder, environment, also)
        self._command = tuple(command)

    async def send(self, notification: Notification) -> None:
        await self._run(self._command, msgspec.json.encode(notification.document(clock.now())) + b"\n")
