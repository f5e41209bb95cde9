"""The systemd unit of a host."""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from iterdev.app.clients.install import program
from iterdev.core.errors import HostError

NAME = "iterdev-worker.service"
INHERITED = ("PATH", "ITERDEV_HOME", "XDG_CONFIG_HOME", "TEMPORAL_CONFIG_FILE", "TEMPORAL_PROFILE")
"""Variables that the service gets as they are here. None has a secret: those belong into the environment file."""


class InstalledUnit(Struct, frozen=True, kw_only=True):
    file: str
    start: str
    """The command that starts the service, now and whenever the machine starts."""


def install(
    slots: Sequence[str], environment: Mapping[str, str] = os.environ, *, is_root: bool | None = None
) -> InstalledUnit:
    """Writes the unit: for the whole machine if the user is root, else for the user."""
    as_root = os.geteuid() == 0 if is_root is None else is_root
    user_folder = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME") or Path.home()) / ".config"
    folder = Path("/etc/systemd/system") if as_root else Path(user_folder, "systemd", "user")
    file = folder / NAME
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(unit(program(), slots, environment, is_root=as_root), encoding="utf-8")
    except OSError as error:
        raise HostError(f'Cannot write "{file}": {error.strerror}', hint=f"ls -ld {folder}") from error
    control = "systemctl" if as_root else "systemctl --user"
    # A service of a user ends with its last login, unless it lingers.
    linger = "" if as_root else "loginctl enable-linger && "
    return InstalledUnit(file=str(file), start=f"{linger}{control} daemon-reload && {control} enable --now {NAME}")


def unit(command: str, slots: Sequence[str], environment: Mapping[str, str], *, is_root: bool) -> str:
    options = "".join(f" --agent {shlex.quote(text)}" for text in slots)
    variables = "".join(
        f"Environment={_quoted(f'{name}={environment[name]}')}\n" for name in INHERITED if environment.get(name)
    )
    secrets = "/etc/iterdev/host.env" if is_root else "%E/iterdev/host.env"
    return f"""\
[Unit]
Description=iterdev host: runs coding agents for engines on other machines
After=network-online.target
Wants=network-online.target

[Service]
ExecStart={_quoted(command)} worker{options}
{variables}# Keys of providers, such as ANTHROPIC_API_KEY=..., in a file that only its owner can read
EnvironmentFile=-{secrets}
# Whatever happens to the worker, its agents end with it
KillMode=control-group
TimeoutStopSec=60
Restart=always
RestartSec=2
# A host that was drained has ended for good
RestartPreventExitStatus=0

[Install]
WantedBy={"multi-user.target" if is_root else "default.target"}
"""


def _quoted(text: str) -> str:
    """As systemd reads words; a percent sign would begin a specifier."""
    escaped = text.replace("\\", r"\\").replace('"', r"\"").replace("%", "%%")
    return f'"{escaped}"'
