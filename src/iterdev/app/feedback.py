"""Feedback of the user on the work of a session."""

from collections.abc import Callable, Sequence

from iterdev.app.edits import edit_session, redacted_text, require_task
from iterdev.core.collaboration import feedback as rules
from iterdev.core.collaboration.feedback import Feedback, FeedbackCategory, FeedbackLinked, FeedbackStatus
from iterdev.core.errors import UserError
from iterdev.core.session.events import Event
from iterdev.core.session.state import State
from iterdev.core.types import SessionId, Severity
from iterdev.engine.repository import Repository
from iterdev.host import clock
from iterdev.store.session_folder.json_records import item_record

document = item_record
"""What `--json` prints of feedback."""
EXAMPLE = 'iterdev feedback add "The greeting is too long"'


def add(repository: Repository, session: SessionId, text: str, *, severity: str, category: str) -> Feedback:
    item = Feedback(
        description=redacted_text(repository, text, EXAMPLE),
        severity=Severity(severity),
        category=FeedbackCategory(category),
        timestamp=clock.now(),
    )
    with edit_session(repository, session) as log:
        log.transact(lambda state, _: [rules.give(state.feedback, item, kept=state.policy.feedback_kept)])
        return log.state.feedback[0]


def is_urgent(item: Feedback) -> bool:
    """Whether the feedback is included in the prompt of every later task."""
    return item.severity in rules.URGENT


def items(repository: Repository, session: SessionId) -> Sequence[Feedback]:
    """The newest first."""
    return repository.state(session).feedback


def everywhere(repository: Repository) -> list[tuple[SessionId, Feedback]]:
    """That of all sessions, the newest first."""
    found = [(name, item) for name in repository.sessions() for item in items(repository, name)]
    return sorted(found, key=lambda pair: pair[1].timestamp, reverse=True)


def link(repository: Repository, session: str | None, name: str, task: str) -> Feedback:
    """Links feedback to a task, and marks it as reviewed."""
    return _changed(
        repository, session, name, lambda state: FeedbackLinked(feedback_id=name, task=require_task(state, task))
    )


def close(repository: Repository, session: str | None, name: str) -> Feedback:
    moved = rules.FeedbackMoved(feedback_id=name, status=FeedbackStatus.closed)
    return _changed(repository, session, name, lambda _: moved)


def _changed(repository: Repository, session: str | None, name: str, change: Callable[[State], Event]) -> Feedback:
    def rule(state: State, _: float) -> Sequence[Event]:
        _known(state, name)
        return [change(state)]

    with edit_session(repository, session_of(repository, name, session)) as log:
        log.transact(rule)
        return _known(log.state, name)


def session_of(repository: Repository, name: str, session: str | None) -> SessionId:
    """The session that was named, or else the newest one that has the feedback."""
    if session:
        return repository.find(session)
    for found in reversed(repository.sessions()):
        if rules.by_id(repository.state(found).feedback, name):
            return found
    raise UserError(f'No session has the feedback "{name}"', hint="iterdev feedback list")


def _known(state: State, name: str) -> Feedback:
    if item := rules.by_id(state.feedback, name):
        return item
    known = ", ".join(item.feedback_id for item in state.feedback) or "none"
    raise UserError(f'There is no feedback "{name}" in {state.session.id}', hint=f"feedback: {known}")
