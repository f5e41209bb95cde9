"""Processes of an agent that are still running, found by a mark in what they inherited."""

from contextlib import suppress
from pathlib import Path


def find_leftovers(mark: str) -> tuple[str, ...]:
    """The command lines of all processes with the mark in their environment, arguments or current folder.

    An agent may start its tools with another environment or in another folder, but not both.
    """
    found = (_command_line(process, mark) for process in Path("/proc").glob("[0-9]*"))
    return tuple(line for line in found if line)


def _command_line(process: Path, mark: str) -> str:
    """Empty for a process without the mark, or one that has ended."""
    with suppress(OSError):
        line, environment = (
            (process / file).read_text(encoding="utf-8", errors="replace") for file in ("cmdline", "environ")
        )
        if mark in line or mark in environment or mark in str((process / "cwd").readlink()):
            return line.replace("\0", " ").strip()
    return ""
