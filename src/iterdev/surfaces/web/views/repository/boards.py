"""W14, W15: feedback, technical debt and wisdom of all sessions, as boards with forms that move a card."""

from collections.abc import Sequence

from iterdev.app import feedback, tech_debt, wisdom
from iterdev.app.feedback import FeedbackCategory, FeedbackStatus
from iterdev.app.tech_debt import DebtStatus
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId, Severity
from iterdev.surfaces.web.page import ActRequest, Done, NoSuchPage, Page, PageRequest, Part

FEEDBACK, DEBT, WISDOM = "/boards/feedback", "/boards/debt", "/wisdom"


def feedback_board(request: PageRequest) -> Page:
    with request.repository() as repository:
        found = feedback.everywhere(repository)
        sessions = repository.sessions()
    columns = [(status, [pair for pair in found if pair[1].status is status]) for status in FeedbackStatus]
    values = {
        "columns": columns,
        "sessions": sessions[::-1],
        "severities": list(Severity),
        "categories": list(FeedbackCategory),
        "may_act": request.may_act,
    }
    return _page("Feedback", "feedback", values)


def debt_board(request: PageRequest) -> Page:
    with request.repository() as repository:
        found = tech_debt.everywhere(repository)
    order = list(Severity)
    found.sort(key=lambda pair: order.index(pair[1].severity))
    columns = [(status, [pair for pair in found if pair[1].status is status]) for status in DebtStatus]
    return _page("Technical debt", "debt", {"columns": columns, "may_act": request.may_act})


def wisdom_board(request: PageRequest) -> Page:
    with request.repository() as repository:
        learned = wisdom.learned(repository)
    files = dict.fromkeys(one.file for one in learned)
    by_file = {name: [one for one in reversed(learned) if one.file == name] for name in files}
    return _page("Wisdom", "wisdom", {"by_file": by_file, "may_act": request.may_act})


def _page(title: str, name: str, values: dict[str, object]) -> Page:
    boards = ((FEEDBACK, "Feedback"), (DEBT, "Technical debt"), (WISDOM, "Wisdom"))
    part = Part(name=name, template=f"{name}.html", values={**values, "boards": boards, "title": title})
    return Page(title=title, parts=(part,), place="boards")


def change_feedback(request: ActRequest) -> Done:
    """Adds feedback, links it to a task, or closes it."""
    fields, session = request.fields, _session(request)
    with request.repository() as repository:
        match fields.get("do", ""):
            case "add":
                severity, category = fields.get("severity", ""), fields.get("category", "")
                _require("severity", severity, list(Severity))
                _require("category", category, list(FeedbackCategory))
                added = feedback.add(repository, session, fields.get("text", ""), severity=severity, category=category)
                what = f"feedback add {added.feedback_id}"
            case "link":
                feedback.link(repository, session, fields.get("id", ""), fields.get("task", ""))
                what = f"feedback link {fields.get('id', '')} {fields.get('task', '')}"
            case "close":
                feedback.close(repository, session, fields.get("id", ""))
                what = f"feedback close {fields.get('id', '')}"
            case other:
                raise UserError(f'"{other}" cannot be done with feedback', hint="add, link or close")
    return Done(what=what, go_to=FEEDBACK)


def change_debt(request: ActRequest) -> Done:
    fields, session = request.fields, _session(request)
    name, status = fields.get("id", ""), fields.get("status", "")
    _require("status", status, list(DebtStatus))
    with request.repository() as repository:
        tech_debt.move(repository, session, name, status)
    return Done(what=f"debt {status} {name}", go_to=DEBT)


def reject_wisdom(request: ActRequest) -> Done:
    name = request.fields.get("id", "")
    with request.repository() as repository:
        wisdom.reject(repository, name, request.fields.get("reason", ""))
    return Done(what=f"wisdom reject {name}", go_to=WISDOM)


def _session(request: ActRequest) -> SessionId:
    name = request.fields.get("session", "")
    if name not in request.watching.names():
        raise NoSuchPage(f'There is no session "{name}"')
    return SessionId(name)


def _require(what: str, text: str, known: Sequence[str]) -> None:
    if text not in known:
        raise UserError(f'"{text}" is not a {what}', hint=f"one of: {', '.join(known)}")
