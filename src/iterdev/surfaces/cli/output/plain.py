"""Plain lines, for a pipe or a log."""

import os
import sys

import click


def print_error(text: str) -> None:
    click.echo(text, err=True)


def print_line(text: str) -> None:
    """Prints a line. When the reader of a pipe is gone, as after `| head`, the run goes on without output."""
    try:
        click.echo(text)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
