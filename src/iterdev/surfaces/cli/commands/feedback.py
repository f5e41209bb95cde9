"""feedback: what the user thinks of the work."""

import json

import click

from iterdev.core.collaboration import feedback as pure
from iterdev.core.collaboration.feedback import Feedback, FeedbackCategory, FeedbackStatus
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId, Severity
from iterdev.engine import collaboration
from iterdev.engine.repository import Repository
from iterdev.host import clock
from iterdev.store.session_folder.collaboration_records import feedback_record
from iterdev.surfaces.cli.arguments import repository, sentence, task_name

EXAMPLE = 'iterdev feedback add --session-id ID "The greeting is too long"'


def add(*, text: tuple[str, ...], session_id: str, severity: str, category: str, as_json: bool) -> int:
    found = repository()
    item = Feedback(
        description=sentence(found, text, EXAMPLE),
        severity=Severity(severity),
        category=FeedbackCategory(category),
        timestamp=clock.now(),
    )
    with collaboration.opened(found, found.find(session_id)) as log:
        noted = collaboration.give_feedback(log, item)
    if as_json:
        click.echo(json.dumps(feedback_record(noted), ensure_ascii=False))
    else:
        urgent = noted.severity in pure.URGENT
        reach = "put before every later task" if urgent else "kept; only high and critical reach later tasks"
        click.echo(f"{noted.feedback_id}: {noted.severity}, {noted.category}, {reach}")
    return 0


def items(*, session_id: str | None, as_json: bool) -> int:
    found = repository()
    state = found.state(found.find(session_id) if session_id else found.newest())
    if as_json:
        records = [feedback_record(item) for item in state.feedback]
        click.echo(json.dumps({"user_feedback_items": records}, ensure_ascii=False))
        return 0
    if not state.feedback:
        click.echo(f"No feedback on {state.session.id}.")
    for item in state.feedback:
        linked = f"  ({item.source_task_id})" if item.source_task_id else ""
        text = " ".join(item.description.split())
        click.echo(f"{item.feedback_id}  {item.severity:<8}  {item.status:<9}  {item.category:<11}  {text}{linked}")
    return 0


def link(*, feedback: str, task: str, session_id: str | None) -> int:
    found = repository()
    with collaboration.opened(found, _session_of(found, feedback, session_id)) as log:
        linked = collaboration.link_feedback(log, feedback, task_name(task))
    click.echo(f"{linked.feedback_id} is linked to {linked.source_task_id} and {linked.status}")
    return 0


def close(*, feedback: str, session_id: str | None) -> int:
    found = repository()
    with collaboration.opened(found, _session_of(found, feedback, session_id)) as log:
        closed = collaboration.move_feedback(log, feedback, FeedbackStatus.closed)
    click.echo(f"{closed.feedback_id} is {closed.status}")
    return 0


def _session_of(found: Repository, feedback: str, named: str | None) -> SessionId:
    """The session that was named, or else the newest one that has the feedback."""
    if named:
        return found.find(named)
    for session in reversed(found.sessions()):
        if pure.named(found.state(session).feedback, feedback):
            return session
    raise UserError(f'No session has the feedback "{feedback}"', hint="iterdev feedback list")
