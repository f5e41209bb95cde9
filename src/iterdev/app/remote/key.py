"""The key that seals what engines and hosts send each other."""

from pathlib import Path

from msgspec import Struct

from iterdev.core.settings import DEFAULT_KEY
from iterdev.engine.repository import Repository
from iterdev.execution.temporal.keys import add_key
from iterdev.host.git.checkout import NotInRepository


class NewKey(Struct, frozen=True, kw_only=True):
    id: str
    file: str
    seals: bool
    """Whether messages are sealed with it from now on: the first key of a file is."""


def new_key(file: str | None, folder: Path) -> NewKey:
    """Writes a new key to the file, or to that of the configuration, after those that it already has."""
    keys = add_key(file or _configured(folder))
    return NewKey(id=keys.keys[-1].id, file=keys.file, seals=len(keys.keys) == 1)


def _configured(folder: Path) -> str:
    try:
        return Repository(folder).settings.remote.key
    except NotInRepository:
        return DEFAULT_KEY
