"""What commands print: text and documents on standard output, errors on standard error."""

import io
import json
import os
import sys
from pathlib import Path

import click
import msgspec

from iterdev.core.errors import IterdevError


def make_printable() -> None:
    """Makes sure that any text can be printed: as an escape where needed, and to nowhere if the output is closed."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open for as long as the process runs
        elif isinstance(stream, io.TextIOWrapper) and stream.errors == "strict":
            stream.reconfigure(errors="backslashreplace")


def print_line(text: str) -> None:
    """Prints a line. When the reader of a pipe has left, as `| head` does, the run goes on without output."""
    try:
        click.echo(text)
    except BrokenPipeError:
        discard_output()


def discard_output() -> None:
    """Drops everything that is printed from now on, also what is still buffered."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_document(document: object) -> None:
    click.echo(json.dumps(msgspec.to_builtins(document), ensure_ascii=False))


def print_either(text: str, document: object, *, as_json: bool) -> None:
    """Prints a text for people, or a document for programs."""
    if as_json:
        print_document(document)
    else:
        click.echo(text)


def print_warning(text: str) -> None:
    click.echo(text, err=True)


def print_error(error: IterdevError) -> None:
    sys.stderr.write(f"iterdev: {error.message}\n")
    if error.hint:
        sys.stderr.write(f"hint: {error.hint}\n")
