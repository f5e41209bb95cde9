"""Commands of iterdev that another program has run for it, such as a server for people's own clients.

They are processes of their own: a session is started in the same way as from a shell, by the same arguments.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.app.live.background import SAID, WRONG
from iterdev.core.errors import HostError, UserError
from iterdev.host.processes import detached

HINT = "hint: "
FAILED = "The command ended without saying why"


class StartedCommand(Struct, frozen=True, kw_only=True):
    document: dict[str, object]
    """What it printed with --json."""
    notes: tuple[str, ...]
    """Warnings."""


def run_command(folder: Path, arguments: Sequence[str], line: str = "") -> StartedCommand:
    """Runs `iterdev` with the arguments; `line` is its standard input. Raises the error that it ends with."""
    # -P: modules of the folder that it starts in must not be taken for those of iterdev.
    done = detached.complete([sys.executable, "-P", "-m", "iterdev", *arguments], cwd=folder, text=line)
    said = done.stderr.strip().splitlines()
    try:
        document = msgspec.json.decode(done.stdout, type=dict[str, object])
    except msgspec.MsgspecError:
        message = next((one.removeprefix(SAID) for one in said if one.startswith(SAID)), "")
        hint = next((one.removeprefix(HINT) for one in said if one.startswith(HINT)), "")
        error = UserError if done.returncode == WRONG else HostError
        raise error(message or (said or [FAILED])[-1], hint=hint) from None
    return StartedCommand(document=document, notes=tuple(said))
