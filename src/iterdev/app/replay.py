"""Decides the journal of a session again, and finds the first difference."""

from iterdev.core.session.replay_check import Replay, compare
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository


def replay(repository: Repository, session: SessionId) -> Replay:
    return compare(repository.journal.read(session), repository.team(repository.state(session)))
