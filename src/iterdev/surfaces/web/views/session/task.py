"""W5: everything about one task, with all its attempts and what can be done about it."""

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
