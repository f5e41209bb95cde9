"""iterdev feedback."""

import click

from iterdev.app import feedback as app_feedback
from iterdev.app.feedback import Feedback, FeedbackCategory
from iterdev.core.types import Severity
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_either

feedback_argument = click.argument("name", metavar="FB")
feedback = CommandGroup("feedback", help="Give the team feedback on its work")


@feedback.command(help="Add feedback; high and critical severity reaches every later task")
@arguments.session_and_text
@arguments.one_of("--severity", Severity, "How much it matters", "medium")
@arguments.one_of("--category", FeedbackCategory, "What it is about", "general")
@arguments.as_json
def add(*, given: arguments.SessionText, severity: str, category: str, as_json: bool) -> None:
    item = app_feedback.add(*given, severity=severity, category=category)
    urgent, kept = "put before every later task", "kept; only high and critical reach later tasks"
    reach = urgent if app_feedback.is_urgent(item) else kept
    line = f"{item.feedback_id}: {item.severity}, {item.category}, {reach}"
    print_either(line, app_feedback.document(item), as_json=as_json)


@feedback.command("list", help="List the feedback, the newest first")
@arguments.session_of_caller
@arguments.as_json
def list_(*, session: arguments.SelectedSession, as_json: bool) -> None:
    items = app_feedback.items(*session)
    text = "\n".join(map(_line, items)) or f"No feedback on {session.id}."
    print_either(text, {"user_feedback_items": list(map(app_feedback.document, items))}, as_json=as_json)


@feedback.command(help="Link feedback to a task, and mark it as reviewed")
@arguments.session_name
@feedback_argument
@click.argument("task")
@arguments.as_json
def link(*, session: str | None, name: str, task: str, as_json: bool) -> None:
    linked = app_feedback.link(arguments.repository_of_caller(), session, name, task)
    line = f"{linked.feedback_id} is linked to {linked.source_task_id} and {linked.status}"
    print_either(line, app_feedback.document(linked), as_json=as_json)


@feedback.command(help="Close feedback that needs nothing more")
@arguments.session_name
@feedback_argument
@arguments.as_json
def close(*, session: str | None, name: str, as_json: bool) -> None:
    closed = app_feedback.close(arguments.repository_of_caller(), session, name)
    print_either(f"{closed.feedback_id} is {closed.status}", app_feedback.document(closed), as_json=as_json)


def _line(item: Feedback) -> str:
    linked = f"  ({item.source_task_id})" if item.source_task_id else ""
    text = " ".join(item.description.split())
    return f"{item.feedback_id}  {item.severity:<8}  {item.status:<9}  {item.category:<11}  {text}{linked}"
