"""W10: one question, with what it is about, what each choice does, and the form that answers it."""

from msgspec.structs import replace

from iterdev.app import answer as app_answer
from iterdev.core.views.gates import EDIT, GateView
from iterdev.core.views.history import SpanKind
from iterdev.surfaces.web.page import ActRequest, Done, Moved, Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page


def page(request: PageRequest) -> Page:
    name = request.arguments["gate"]
    with request.session() as watched:
        view = watched.view(room=0)
        gate = next((gate for gate in view.gates if gate.id == name), None)
        asked = [one for one in watched.history().spans if one.kind is SpanKind.question and one.name == name]
    if gate is None and not asked:
        request.missing(f'"{name}" is not a question of this session')
    values = {
        "view": view,
        "gate": gate,
        "past": asked[-1] if asked else None,
        "can_edit": gate is not None and EDIT in gate.actions,
        "opened": opening(gate) if gate else "",
        "may_act": request.may_act,
    }
    part = Part(name="question", template="question.html", values=values)
    # The question is the page; what else needs the user is on the others.
    return session_page(request, replace(view, needs=()), "question", "Question", part)


def opening(gate: GateView) -> str:
    """Which opening of a question is meant: one of the same id may be asked again."""
    return repr(gate.opened_at)


def answer(request: ActRequest) -> Done:
    name, choice = request.arguments["gate"], request.fields.get("choice", "")
    session = request.session
    with request.watching.session(session) as watched:
        gate = next((gate for gate in watched.view(room=0).gates if gate.id == name), None)
    if gate is None or opening(gate) != request.fields.get("opened"):
        raise Moved(f'"{name}" has already been answered')
    with request.repository() as repository:
        answered = app_answer.answer(repository, session, name, choice)
    return Done(what=f"answer {name}: {answered.choice}", go_to=f"/s/{session}")
