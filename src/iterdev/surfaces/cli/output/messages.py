"""What commands print: documents on standard output, errors on standard error."""

import json
import sys

import click
import msgspec

from iterdev.core.errors import IterdevError


def print_document(document: object) -> None:
    """Prints one JSON document."""
    click.echo(json.dumps(msgspec.to_builtins(document), ensure_ascii=False))


def print_either(text: str, document: object, *, as_json: bool) -> None:
    """Prints a text for people, or a document for programs."""
    if as_json:
        print_document(document)
    else:
        click.echo(text)


def show_error(error: IterdevError) -> None:
    sys.stderr.write(f"iterdev: {error.message}\n")
    if error.hint:
        sys.stderr.write(f"hint: {error.hint}\n")
