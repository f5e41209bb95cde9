"""Decides the journal of a session again, and reports the first difference."""

from iterdev.core.session.replay_check import compare
from iterdev.core.types import SessionId
from iterdev.core.views.replay import ReplayView, replay_view
from iterdev.engine.repository import Repository


def replay(repository: Repository, session: SessionId) -> ReplayView:
    return replay_view(session, compare(repository.journal.read(session)))
