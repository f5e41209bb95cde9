"""W17: the plan as a table that is edited in place. Saving it is what an edit of tasks.csv is."""

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from iterdev.app.live import plan
from iterdev.app.live.plan import PlanChanged, WrongRow
from iterdev.core.errors import UserError
from iterdev.core.views.gates import EDIT
from iterdev.surfaces.web.page import ActRequest, Done, Moved, Page, PageRequest, Part, Unfit
from iterdev.surfaces.web.views.session.head import session_page

MOST_ROWS = 1500
EMPTY_ROWS = 3
"""Rows to add tasks in."""


def page(request: PageRequest) -> Page:
    with request.session() as watched:
        view = watched.view(room=0)
    try:
        with request.repository() as repository:
            table = plan.read_plan(repository, view.id)
    except UserError:
        table = None
    gate = next((gate for gate in view.gates if EDIT in gate.actions), None)
    can_edit = request.may_act and table is not None and gate is not None
    values = {
        "view": view,
        "table": table,
        "gate": gate,
        "can_edit": can_edit,
        "empty_rows": EMPTY_ROWS,
        "moved": "moved" in request.query,
        "saved": "saved" in request.query,
    }
    made = session_page(request, view, "plan", "Plan", Part(name="plan", template="plan.html", values=values))
    # What a person types must not be replaced while the engine goes on.
    return replace(made, is_live=not can_edit)


def save(request: ActRequest) -> Done:
    session = request.session
    with request.repository() as repository:
        try:
            plan.save_plan(repository, session, list(_rows(request.fields)), request.fields.get("digest", ""))
        except PlanChanged:
            raise Moved("The plan has changed since it was shown") from None
        except WrongRow as error:
            raise Unfit(error, None if error.row is None else _numbers(request.fields)[error.row]) from error
    return Done(what="edit plan", go_to=f"/s/{session}/plan?saved=1")


def _rows(fields: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """The rows of the form; one without an id is left out."""
    for number in _numbers(fields):
        yield {name: fields.get(f"{number}.{name}", "").strip() for name in plan.EDITABLE}


def _numbers(fields: Mapping[str, str]) -> list[int]:
    return [number for number in range(MOST_ROWS) if fields.get(f"{number}.id", "").strip()]
