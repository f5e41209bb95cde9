"""A parser of something that iterdev did not write, and what it may do with an input."""

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec import Struct

from iterdev.core.errors import IterdevError

Run = Callable[[bytes, Path], object]
"""Gives the input to the parser; the folder is empty, for parsers that read files."""


class Target(Struct, frozen=True, kw_only=True):
    name: str
    run: Run
    examples: Sequence[bytes]
    refusals: tuple[type[Exception], ...] = ()
    """The errors that the callers of the parser expect, beside those for people."""

    @property
    def allowed(self) -> tuple[type[Exception], ...]:
        return (IterdevError, *self.refusals)


def text_target(
    name: str, read: Callable[[str], object], *examples: str, refusals: tuple[type[Exception], ...] = ()
) -> Target:
    """A parser of text, which was decoded as far as it can be."""
    return Target(
        name=name,
        run=lambda data, _: read(data.decode("utf-8", "replace")),
        examples=[example.encode("utf-8", "surrogatepass") for example in examples],
        refusals=refusals,
    )


def files_target(
    name: str, read: Callable[[Path], object], files: dict[str, str], *, refusals: tuple[type[Exception], ...] = ()
) -> Target:
    """A parser of a folder. An input is the name of a file, a null byte, and its content; the others stay."""

    def run(data: bytes, folder: Path) -> object:
        chosen, _, content = data.partition(b"\0")
        given = chosen.decode("utf-8", "replace")
        for other, text in files.items():
            path = folder / other
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content if other == given else text.encode())
        return read(folder)

    examples = [f"{name}\0{text}".encode() for name, text in files.items()]
    return Target(name=name, run=run, examples=examples, refusals=refusals)
