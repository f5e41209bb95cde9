"""W5: everything about one task, with all its attempts and what can be done about it."""

from msgspec.structs import replace

from iterdev.app import inspect
from iterdev.core.types import Phase, Status
from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page
from iterdev.surfaces.web.views.session.pipeline import style_of


def page(request: PageRequest) -> Page:
    name = request.arguments["task"]
    with request.session() as watched:
        view = watched.view(room=0)
        details = watched.details(name)
        attempts = watched.history().of_task(details.task.id)
    task = details.task
    over = view.phase in {Phase.completed, Phase.archived}
    values = {
        "view": view,
        "details": details,
        "task": task,
        "style": style_of(task),
        "attempts": attempts,
        "can_retry": over and task.status in {Status.failed, Status.skipped},
        "can_roll_back": task.status is Status.completed and not view.running,
        "may_act": request.may_act,
    }
    return session_page(request, view, "task", task.id, Part(name="task", template="task.html", values=values))


def prompt(request: PageRequest) -> Page:
    """What the agent of an attempt was asked."""
    name = request.arguments["task"]
    with request.session() as watched:
        view, attempts = watched.view(room=0), [one for one in watched.history().attempts if one.task == name]
    if not attempts:
        request.missing(f'There is no attempt at "{name}"')
    number = request.number("attempt", attempts[-1].number)
    with request.repository() as repository:
        text = inspect.prompt(repository, view.id, name, number)
    values = {"view": view, "task": name, "number": number, "attempts": attempts, "text": text}
    part = Part(name="prompt", template="prompt.html", values=values)
    # What was asked does not change, and is not made again while one looks at it.
    return replace(session_page(request, view, "task", f"Prompt of {name}", part), is_live=False)
