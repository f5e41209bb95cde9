"""W19: every entry of the journal; a click shows the session as it was then."""

from iterdev.surfaces.web.page import File, Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page


def page(request: PageRequest) -> Page:
    event, task = request.query.get("event", ""), request.query.get("task", "")
    with request.session() as watched:
        view = watched.view(room=0)
        found = watched.journal(event=event, task=task, page=request.number("page", 1))
    values = {"view": view, "journal": found, "event": event, "task": task}
    part = Part(name="journal", template="journal.html", values=values)
    return session_page(request, view, "journal", "Journal", part)


def download(request: PageRequest) -> File:
    with request.session() as watched:
        return File(name=f"{watched.view(room=0).id}.jsonl", text=watched.journal_lines())
