"""Where the attempts of a test's sessions are made: the same claims hold in each place."""

from enum import StrEnum
from pathlib import Path

from iterdev.core.session.events import AttemptEnded, AttemptStarted
from iterdev.engine.repository import STATE, Repository
from iterdev.store.journal import NAME

MADE = "made-elsewhere"
"""The file of the user's home with a line for each attempt that was made on the other host."""


class Place(StrEnum):
    here = "here"
    elsewhere = "elsewhere"
    """In another process that sees neither checkout, session folder nor journal (`tests/execution/elsewhere.py`)."""
    hosts = "hosts"
    """On a host, a real `iterdev worker`, through a real Temporal server and a git remote."""


def made_in_another_place(top: Path, home: Path, place: Place) -> list[str]:
    """The attempts of a repository's sessions that asked an agent, and not in the place that was meant."""
    if place is Place.here or not (top / STATE / NAME).exists():
        return []
    repository = Repository(top)
    try:
        events = [entry.event for session in repository.sessions() for entry in repository.journal.read(session)]
    finally:
        repository.close()
    asked = {f"{event.task} {event.number}" for event in events if isinstance(event, AttemptEnded) and event.requests}
    placed = {f"{event.task} {event.number}" for event in events if isinstance(event, AttemptStarted) and event.where}
    noted = home / MADE
    made = set(noted.read_text().splitlines()) if noted.exists() else set()
    return sorted(asked - (placed if place is Place.hosts else made))
