"""What commands print: text and documents on standard output, warnings and errors on standard error.

Here, and nowhere else, text reaches the terminal: without the control codes that text of others may have, and broken
between words.
"""

import io
import json
import os
import re
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import click
import msgspec

from iterdev.core.errors import IterdevError
from iterdev.core.formatting import plain
from iterdev.surfaces.cli.output.wrapping import wrapped

STDERR = 2
_CONTROLS = re.compile("[\x7f-\x9f]")
"""Control characters that JSON leaves as they are."""


def print_text(text: str) -> None:
    _print(text, error=False)


def make_printable() -> None:
    """Makes sure that any text can be printed: as an escape where needed, and to nowhere if the output is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open for as long as the process runs
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def print_line(text: str) -> None:
    """Prints a line. When the reader of a pipe has left, as `| head` does, the run continues without output."""
    try:
        print_text(text)
    except BrokenPipeError:
        discard_output()


def print_prompt(text: str) -> None:
    """Prints the text before an answer, on the same line."""
    click.echo(plain(text), nl=False)


def discard_output() -> None:
    """Drops everything that is printed from now on, and what is still buffered."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_document(document: object) -> None:
    click.echo(_json(document))


def _json(document: object) -> str:
    plain_document = msgspec.to_builtins(document)
    try:
        text = json.dumps(plain_document, ensure_ascii=False, allow_nan=False)
    except ValueError:
        # JSON has no infinity; an agent's own line on the board may have.
        text = msgspec.json.encode(plain_document).decode()
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class GrowingDocument:
    """Prints one document with a list, each item on a line of its own as soon as it is known.

    The lines between the first and the last are items, which begin with a comma except for the first one.
    """

    def __init__(self, name: str, **before: object) -> None:
        self._comma = ""
        click.echo(f"{_json(before)[:-1]}, {_json(name)}: [")

    def add(self, item: object) -> None:
        click.echo(f"{self._comma}{_json(item)}")
        self._comma = ","

    def close(self, **after: object) -> None:
        click.echo(f"], {_json(after)[1:]}")


def print_either(text: str, document: object, *, as_json: bool) -> None:
    """Prints a text for people, or a document for programs."""
    if as_json:
        print_document(document)
    else:
        print_text(text)


def print_warning(text: str) -> None:
    _print(text, error=True)


def print_alert(text: str) -> bool:
    """A notification of the terminal, and its bell; False where there is no terminal."""
    shown = " ".join(plain(text).split())
    with suppress(OSError):
        if os.isatty(STDERR):
            # Not through the stream: while a live picture is shown, that breaks lines.
            os.write(STDERR, f"\x1b]9;{shown}\x07\a".encode("utf-8", "backslashreplace"))
            return True
    return False


def print_error(error: IterdevError) -> None:
    _print(f"iterdev: {error.message}", error=True)
    if error.hint:
        # Not broken, because it is pasted.
        click.echo(f"hint: {plain(error.hint)}", err=True)


def local_time(text: object) -> str:
    """A time from a document, in the time zone of the user."""
    return datetime.fromisoformat(str(text)).astimezone().isoformat(timespec="seconds")


def local_moment(at: float) -> str:
    """A point in time, in the time zone of the user."""
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")


def columns() -> int:
    import shutil  # noqa: PLC0415 - only terminals need it

    return shutil.get_terminal_size().columns


def _print(text: str, *, error: bool) -> None:
    shown = plain(text)
    stream = sys.stderr if error else sys.stdout
    click.echo(wrapped(shown, columns()) if stream.isatty() else shown, err=error)
