"""The technical debt of a session."""

from collections.abc import Sequence

from msgspec import Struct

from iterdev.app.edits import edit_session, redacted_text, require_task
from iterdev.core.collaboration import tech_debt as rules
from iterdev.core.collaboration.tech_debt import Debt, DebtCategory, DebtMoved, DebtStatus, Effort, Priority, Report
from iterdev.core.errors import UserError
from iterdev.core.session.events import Event
from iterdev.core.session.state import State
from iterdev.core.types import SessionId, Severity
from iterdev.engine.repository import Repository
from iterdev.store.session_folder.json_records import debt_report, item_record

document, report_document = item_record, debt_report
"""What `--json` prints of a debt and of a report."""
EXAMPLE = 'iterdev debt add --session-id ID "The parser is copied in two places"'


class NewDebt(Struct, frozen=True, kw_only=True):
    """Debt as a person describes it."""

    description: str
    severity: Severity = Severity.medium
    category: DebtCategory = DebtCategory.code
    priority: Priority = Priority.medium
    effort: Effort | None = None
    owner: str | None = None
    plan: str | None = None
    task: str | None = None
    files: tuple[str, ...] = ()


def add(repository: Repository, session: SessionId, new: NewDebt) -> Debt:
    description = redacted_text(repository, new.description, EXAMPLE)

    def rule(state: State, at: float) -> Sequence[Event]:
        item = Debt(
            description=description,
            severity=new.severity,
            category=new.category,
            priority=new.priority,
            estimated_effort=new.effort,
            owner=repository.redact(new.owner) if new.owner else None,
            resolution_plan=repository.redact(new.plan) if new.plan else None,
            source_task_id=require_task(state, new.task) if new.task else None,
            related_files=new.files,
            detection_date=at,
            sprint=repository.team(state).sprint(state),
        )
        return [rules.identified(state.debt, item)]

    with edit_session(repository, session) as log:
        log.transact(rule)
        return log.state.debt[0]


def items(repository: Repository, session: SessionId) -> Sequence[Debt]:
    """The newest first."""
    return repository.state(session).debt


def report(repository: Repository, session: SessionId) -> Report:
    return rules.report(repository.state(session).debt)


def ranked(repository: Repository, session: SessionId) -> Sequence[Debt]:
    """The debt that is not settled, in the order in which to pay it back."""
    return rules.ranked(repository.state(session).debt)


def move(repository: Repository, session: SessionId, name: str, status: str) -> Debt:
    """Gives a debt another status."""

    def rule(state: State, _: float) -> Sequence[Event]:
        sprint = repository.team(state).sprint(state)
        return [DebtMoved(debt_id=_known(state, name).debt_id, status=DebtStatus(status), sprint=sprint)]

    with edit_session(repository, session) as log:
        log.transact(rule)
        return _known(log.state, name)


def _known(state: State, name: str) -> Debt:
    if item := rules.by_id(state.debt, name):
        return item
    known = ", ".join(item.debt_id for item in state.debt) or "none"
    raise UserError(f'There is no debt "{name}" in {state.session.id}', hint=f"debt: {known}")
