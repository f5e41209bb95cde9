"""iterdev debt."""

import click
import msgspec

from iterdev.app import tech_debt
from iterdev.app.tech_debt import Debt, NewDebt
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_document, print_either


@click.group(cls=CommandGroup, help="Track technical debt")
def debt() -> None:
    pass


@debt.command(help="Note a technical debt")
@click.argument("text", nargs=-1)
@arguments.session_id
@click.option("--severity", type=arguments.SEVERITIES, default="medium", help="How much it hurts  [default: medium]")
@click.option(
    "--category",
    type=click.Choice(["code", "design", "test", "documentation"]),
    default="code",
    help="Where it is  [default: code]",
)
@click.option(
    "--priority",
    type=click.Choice(["low", "medium", "high"]),
    default="medium",
    help="How soon to pay it back  [default: medium]",
)
@click.option("--effort", type=click.Choice(["small", "medium", "large"]), help="What paying it back takes")
@click.option("--owner", metavar="NAME", help="Who looks after it")
@click.option("--plan", metavar="TEXT", help="How it will be paid back")
@click.option("--task", metavar="TASK", help="The task that it comes from")
@click.option("--file", "files", multiple=True, metavar="PATH", help="A file that it concerns; repeatable")
@arguments.as_json
def add(*, text: tuple[str, ...], session_id: str, as_json: bool, **described: object) -> None:
    repository = arguments.repository_of_caller()
    new = msgspec.convert({"description": " ".join(text), **described}, NewDebt)
    item = tech_debt.add(repository, repository.find(session_id), new)
    line = f"{item.debt_id}: {item.severity}, {item.category}"
    print_either(line, tech_debt.document(item), as_json=as_json)


@debt.command("list", help="List the debt, the newest first")
@arguments.session_id
@arguments.as_json
def list_(*, session_id: str, as_json: bool) -> None:
    repository = arguments.repository_of_caller()
    session = repository.find(session_id)
    items = tech_debt.items(repository, session)
    if as_json:
        print_document({"tech_debt_items": list(map(tech_debt.document, items))})
        return
    if not items:
        click.echo(f"No technical debt in {session}.")
    for item in items:
        click.echo(_line(item))


@debt.command(help="Count the debt, and show what to pay back first")
@arguments.session_id
@arguments.as_json
def report(*, session_id: str, as_json: bool) -> None:
    repository = arguments.repository_of_caller()
    session = repository.find(session_id)
    made = tech_debt.report(repository, session)
    if as_json:
        print_document(tech_debt.report_document(made))
        return
    click.echo(f"Total: {made.total}")
    click.echo(f"By severity: {', '.join(f'{word} {count}' for word, count in made.by_severity.items())}")
    click.echo(f"By category: {', '.join(f'{word} {count}' for word, count in made.by_category.items())}")
    click.echo(f"Open: {len(made.open_items)}, in progress: {len(made.in_progress_items)}")
    for item in tech_debt.ranked(repository, session):
        click.echo(_line(item))


@debt.command(help="Mark a debt as resolved")
@click.argument("name", metavar="TD")
@arguments.session_id
@click.option(
    "--status",
    type=click.Choice(["open", "in_progress", "resolved", "deferred"]),
    default="resolved",
    help="Another status  [default: resolved]",
)
def resolve(*, name: str, session_id: str, status: str) -> None:
    repository = arguments.repository_of_caller()
    moved = tech_debt.move(repository, repository.find(session_id), name, status)
    click.echo(f"{moved.debt_id} is {moved.status}")


def _line(item: Debt) -> str:
    source = f"  ({item.source_task_id})" if item.source_task_id else ""
    text = " ".join(item.description.split())
    return f"{item.debt_id}  {item.severity:<8}  {item.status:<11}  {item.category:<13}  {text}{source}"
