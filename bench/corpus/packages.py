"""The packages of the corpus, as `packages.toml` lists them."""

import tomllib
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

LIST = Path(__file__).with_name("packages.toml")


class Change(Struct, frozen=True, forbid_unknown_fields=True):
    """A replacement of text that occurs once in its file."""

    file: str
    find: str
    replace: str

    def apply(self, top: Path) -> None:
        path = top / self.file
        text = path.read_bytes()
        if text.count(self.find.encode()) != 1:
            raise SystemExit(f'"{self.file}" has {text.count(self.find.encode())} times {self.find!r}')
        path.write_bytes(text.replace(self.find.encode(), self.replace.encode()))


class Package(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    """As the registry spells it."""
    version: str
    registry: Literal["pypi", "npm", "debian"]
    sha256: str
    """Of the archive."""
    ecosystem: str
    """The language and the runner of its tests."""
    setup: str = ""
    """What its documentation says to type before the tests; for Python and Node it makes the environment."""
    test: str
    """What its documentation says to type for the tests."""
    tests: int
    """How many tests pass or fail by hand."""
    active: bool = False
    """Whether the user has made the environment and works in it."""
    sample: bool = False
    """Whether it is tried in `make test`."""
    harmless: Change
    breaking: Change


def listed() -> tuple[Package, ...]:
    with LIST.open("rb") as file:
        return msgspec.convert(tomllib.load(file)["package"], tuple[Package, ...])
