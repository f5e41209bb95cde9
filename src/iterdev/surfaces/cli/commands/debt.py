"""debt: shortcuts that will have to be paid for."""

import json

import click

from iterdev.core.collaboration import tech_debt as pure
from iterdev.core.collaboration.tech_debt import Debt, DebtCategory, DebtStatus, Effort, Priority
from iterdev.core.types import Severity
from iterdev.engine import collaboration
from iterdev.host import clock
from iterdev.store.session_folder.collaboration_records import debt_record, debt_report
from iterdev.surfaces.cli.arguments import repository, sentence, task_name

EXAMPLE = 'iterdev debt add --session-id ID "The parser is copied in two places"'


def add(
    *,
    text: tuple[str, ...],
    session_id: str,
    severity: str,
    category: str,
    priority: str,
    effort: str | None,
    owner: str | None,
    plan: str | None,
    task: str | None,
    files: tuple[str, ...],
    as_json: bool,
) -> int:
    found = repository()
    session = found.find(session_id)
    item = Debt(
        description=sentence(found, text, EXAMPLE),
        severity=Severity(severity),
        category=DebtCategory(category),
        priority=Priority(priority),
        estimated_effort=Effort(effort) if effort else None,
        owner=found.redact(owner) if owner else None,
        resolution_plan=found.redact(plan) if plan else None,
        source_task_id=task_name(task) if task else None,
        related_files=files,
        detection_date=clock.now(),
        sprint=found.state(session).sprint,
    )
    with collaboration.opened(found, session) as log:
        noted = collaboration.note_debt(log, item)
    if as_json:
        click.echo(json.dumps(debt_record(noted), ensure_ascii=False))
    else:
        click.echo(f"{noted.debt_id}: {noted.severity}, {noted.category}")
    return 0


def items(*, session_id: str, as_json: bool) -> int:
    found = repository()
    state = found.state(found.find(session_id))
    if as_json:
        records = [debt_record(item) for item in state.debt]
        click.echo(json.dumps({"tech_debt_items": records}, ensure_ascii=False))
        return 0
    if not state.debt:
        click.echo(f"No technical debt in {state.session.id}.")
    for item in state.debt:
        click.echo(_line(item))
    return 0


def report(*, session_id: str, as_json: bool) -> int:
    found = repository()
    state = found.state(found.find(session_id))
    made = pure.report(state.debt)
    if as_json:
        click.echo(json.dumps(debt_report(made), ensure_ascii=False))
        return 0
    click.echo(f"Total: {made.total}")
    click.echo(f"By severity: {', '.join(f'{word} {count}' for word, count in made.by_severity.items())}")
    click.echo(f"By category: {', '.join(f'{word} {count}' for word, count in made.by_category.items())}")
    click.echo(f"Open: {len(made.open_items)}, in progress: {len(made.in_progress_items)}")
    for item in pure.ranked(state.debt):
        click.echo(_line(item))
    return 0


def resolve(*, debt: str, session_id: str, status: str) -> int:
    found = repository()
    with collaboration.opened(found, found.find(session_id)) as log:
        moved = collaboration.move_debt(log, debt, DebtStatus(status))
    click.echo(f"{moved.debt_id} is {moved.status}")
    return 0


def _line(item: Debt) -> str:
    source = f"  ({item.source_task_id})" if item.source_task_id else ""
    text = " ".join(item.description.split())
    return f"{item.debt_id}  {item.severity:<8}  {item.status:<11}  {item.category:<13}  {text}{source}"
