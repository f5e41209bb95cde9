"""The technical debt of a session."""

from collections.abc import Sequence

from msgspec.structs import replace

from iterdev.app.edits import edit_session, redacted_text, require_task
from iterdev.core.collaboration import tech_debt as rules
from iterdev.core.collaboration.tech_debt import Debt, DebtCategory, DebtStatus, Effort, Priority  # noqa: F401
from iterdev.core.errors import UserError
from iterdev.core.session.events import Event
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.engine.repository import Repository
from iterdev.store.session_folder.json_records import debt_report, item_record

document, report_document = item_record, debt_report
"""What `--json` prints of a debt and of a report."""
EXAMPLE = 'iterdev debt add "The parser is copied in two places"'


def add(repository: Repository, session: SessionId, new: Debt) -> Debt:
    """Adds a debt as a person describes it; the date, the sprint and the id are those of now."""
    description = redacted_text(repository, new.description, EXAMPLE)
    described = replace(repository.redact.struct(new), description=description)

    def rule(state: State, at: float) -> Sequence[Event]:
        if new.source_task_id:
            require_task(state, new.source_task_id)
        item = replace(described, detection_date=at, sprint=repository.team(state).sprint(state))
        return [rules.identified(state.debt, item)]

    with edit_session(repository, session) as log:
        log.transact(rule)
        return log.state.debt[0]


def items(repository: Repository, session: SessionId) -> Sequence[Debt]:
    """The newest first."""
    return repository.state(session).debt


def everywhere(repository: Repository) -> list[tuple[SessionId, Debt]]:
    """That of all sessions, the newest first."""
    found = [(name, item) for name in repository.sessions() for item in items(repository, name)]
    return sorted(found, key=lambda pair: pair[1].detection_date, reverse=True)


def report(repository: Repository, session: SessionId) -> tuple[rules.Report, Sequence[Debt]]:
    """The counts, and the debt that is not settled, in the order in which to pay it back."""
    debt = repository.state(session).debt
    return rules.report(debt), rules.ranked(debt)


def move(repository: Repository, session: SessionId, name: str, status: str) -> Debt:
    def rule(state: State, _: float) -> Sequence[Event]:
        sprint = repository.team(state).sprint(state)
        return [rules.DebtMoved(debt_id=_known(state, name).debt_id, status=DebtStatus(status), sprint=sprint)]

    with edit_session(repository, session) as log:
        log.transact(rule)
        return _known(log.state, name)


def _known(state: State, name: str) -> Debt:
    if item := rules.by_id(state.debt, name):
        return item
    known = ", ".join(item.debt_id for item in state.debt) or "none"
    raise UserError(f'There is no debt "{name}" in {state.session.id}', hint=f"debt: {known}")
