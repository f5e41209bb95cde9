"""iterdev feedback."""

import click

from iterdev.app import feedback as app_feedback
from iterdev.app.sessions import named_or_newest
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_document, print_either

feedback_argument = click.argument("name", metavar="FB")


@click.group(cls=CommandGroup, help="Tell the team what you think of its work")
def feedback() -> None:
    pass


@feedback.command(help="Add feedback; high and critical severity reaches every later task")
@click.argument("text", nargs=-1)
@arguments.session_id
@click.option("--severity", type=arguments.SEVERITIES, default="medium", help="How much it matters  [default: medium]")
@click.option(
    "--category",
    type=click.Choice(["general", "ux", "performance", "bug", "feature"]),
    default="general",
    help="What it is about  [default: general]",
)
@arguments.as_json
def add(*, text: tuple[str, ...], session_id: str, severity: str, category: str, as_json: bool) -> None:
    repository = arguments.repository_of_caller()
    session = repository.find(session_id)
    item = app_feedback.add(repository, session, " ".join(text), severity=severity, category=category)
    urgent, kept = "put before every later task", "kept; only high and critical reach later tasks"
    reach = urgent if app_feedback.is_urgent(item) else kept
    line = f"{item.feedback_id}: {item.severity}, {item.category}, {reach}"
    print_either(line, app_feedback.document(item), as_json=as_json)


@feedback.command("list", help="List the feedback, the newest first")
@arguments.newest_session_id
@arguments.as_json
def list_(*, session_id: str | None, as_json: bool) -> None:
    repository = arguments.repository_of_caller()
    session = named_or_newest(repository, session_id)
    items = app_feedback.items(repository, session)
    if as_json:
        print_document({"user_feedback_items": list(map(app_feedback.document, items))})
        return
    if not items:
        click.echo(f"No feedback on {session}.")
    for item in items:
        linked = f"  ({item.source_task_id})" if item.source_task_id else ""
        text = " ".join(item.description.split())
        click.echo(f"{item.feedback_id}  {item.severity:<8}  {item.status:<9}  {item.category:<11}  {text}{linked}")


@feedback.command(help="Link feedback to a task, and mark it as reviewed")
@feedback_argument
@click.argument("task")
@arguments.found_session_id
def link(*, name: str, task: str, session_id: str | None) -> None:
    repository = arguments.repository_of_caller()
    linked = app_feedback.link(repository, app_feedback.session_of(repository, name, session_id), name, task)
    click.echo(f"{linked.feedback_id} is linked to {linked.source_task_id} and {linked.status}")


@feedback.command(help="Close feedback that needs nothing more")
@feedback_argument
@arguments.found_session_id
def close(*, name: str, session_id: str | None) -> None:
    repository = arguments.repository_of_caller()
    closed = app_feedback.close(repository, app_feedback.session_of(repository, name, session_id), name)
    click.echo(f"{closed.feedback_id} is {closed.status}")
