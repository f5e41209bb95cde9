"""The file host.toml, which says what this machine offers as a host."""

import os
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from iterdev.agents.registry import KNOWN_AGENTS
from iterdev.core import host_settings
from iterdev.core.errors import HostError, UserError, did_you_mean
from iterdev.core.host_settings import HostAgentSettings, HostSettings
from iterdev.host import text_files, toml_text

EXAMPLE = "--agent claude=4"


def host_file(environment: Mapping[str, str] = os.environ) -> Path:
    folder = environment.get("XDG_CONFIG_HOME") or Path(environment.get("HOME") or Path.home()) / ".config"
    return Path(folder) / "iterdev" / host_settings.FILE


def read_host_settings(path: Path, slots: Sequence[str] = ()) -> HostSettings:
    """What the file says, if there is one, with the agents and slots of the command line."""
    settings = host_settings.read(_document(path), KNOWN_AGENTS, file=str(path))
    if slots:
        given = dict(_slots(text) for text in slots)
        if unknown := [name for name in given if name not in {*settings.agents, *KNOWN_AGENTS}]:
            known = [*settings.agents, *KNOWN_AGENTS]
            raise UserError(
                f'There is no agent "{unknown[0]}"{did_you_mean(unknown[0], known)}',
                hint=f"known agents: {', '.join(dict.fromkeys(known))}",
            )
        tables = {name: settings.agents.get(name, HostAgentSettings()) for name in given}
        settings = replace(settings, agents={name: replace(tables[name], slots=given[name]) for name in given})
    return settings if settings.name else replace(settings, name=socket.gethostname())


def _document(path: Path) -> dict[str, object]:
    try:
        return toml_text.parse(text_files.read(path))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise UserError(f"{path} is not valid TOML: {error}", hint=f"edit {path}") from error
    except OSError as error:
        raise HostError(f'Cannot read "{path}": {error.strerror}', hint=f"ls -l {path}") from error


def _slots(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    if not name or (number and not (number.isdecimal() and int(number))):
        raise UserError(f'"{text}" is not NAME=SLOTS, with at least one slot', hint=EXAMPLE)
    return name, int(number or 1)
