"""iterdev debt."""

import click
import msgspec

from iterdev.app import tech_debt
from iterdev.app.tech_debt import Debt, DebtCategory, DebtStatus, Effort, Priority
from iterdev.core.types import Severity
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.groups import CommandGroup
from iterdev.surfaces.cli.output.console import print_either

debt = CommandGroup("debt", help="Track technical debt")


@debt.command(help="Record technical debt")
@arguments.session_and_text
@arguments.one_of("--severity", Severity, "How serious it is", "medium")
@arguments.one_of("--category", DebtCategory, "What it concerns", "code")
@arguments.one_of("--priority", Priority, "How soon to resolve it", "medium")
@click.option("--effort", "estimated_effort", type=click.Choice(list(Effort)), help="How much work it is to resolve it")
@click.option("--owner", metavar="NAME", help="Who is responsible for it")
@click.option("--plan", "resolution_plan", metavar="TEXT", help="How to resolve it")
@click.option("--task", "source_task_id", metavar="TASK", help="The task that it comes from")
@click.option("--file", "related_files", multiple=True, metavar="PATH", help="A file that it concerns; repeatable")
@arguments.as_json
def add(*, given: arguments.SessionText, as_json: bool, **described: object) -> None:
    facts = {name: value for name, value in described.items() if value}
    new = msgspec.convert({"description": given.text, **facts}, Debt)
    item = tech_debt.add(given.repository, given.id, new)
    print_either(f"{item.debt_id}: {item.severity}, {item.category}", tech_debt.document(item), as_json=as_json)


@debt.command("list", help="List the debt, the newest first")
@arguments.session_of_caller
@arguments.as_json
def list_(*, session: arguments.SelectedSession, as_json: bool) -> None:
    items = tech_debt.items(*session)
    text = "\n".join(map(_line, items)) or f"No technical debt in {session.id}."
    print_either(text, {"tech_debt_items": list(map(tech_debt.document, items))}, as_json=as_json)


@debt.command(help="Summarize the debt, and show what to resolve first")
@arguments.session_of_caller
@arguments.as_json
def report(*, session: arguments.SelectedSession, as_json: bool) -> None:
    made, ranked = tech_debt.report(*session)
    lines = [
        f"Total: {made.total}",
        f"By severity: {', '.join(f'{word} {count}' for word, count in made.by_severity.items())}",
        f"By category: {', '.join(f'{word} {count}' for word, count in made.by_category.items())}",
        f"Open: {len(made.open_items)}, in progress: {len(made.in_progress_items)}",
        *map(_line, ranked),
    ]
    print_either("\n".join(lines), tech_debt.report_document(made), as_json=as_json)


@debt.command(help="Mark technical debt as resolved")
@arguments.session_of_caller
@click.argument("name", metavar="TD")
@arguments.one_of("--status", DebtStatus, "The new status", "resolved")
@arguments.as_json
def resolve(*, session: arguments.SelectedSession, name: str, status: str, as_json: bool) -> None:
    moved = tech_debt.move(*session, name, status)
    print_either(f"{moved.debt_id} is {moved.status}", tech_debt.document(moved), as_json=as_json)


def _line(item: Debt) -> str:
    source = f"  ({item.source_task_id})" if item.source_task_id else ""
    text = " ".join(item.description.split())
    return f"{item.debt_id}  {item.severity:<8}  {item.status:<11}  {item.category:<13}  {text}{source}"
