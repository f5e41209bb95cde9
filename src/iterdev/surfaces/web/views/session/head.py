"""What every page of a session begins with: what was asked, how far it is, and what needs the user."""

from msgspec.structs import replace

from iterdev.core.types import Status
from iterdev.core.views.session import SessionView
from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.need_cards import need_cards


def head(request: PageRequest, view: SessionView) -> Part:
    values = {
        "view": view,
        "done": view.counts[Status.completed],
        "total": sum(view.counts.values()),
        "cards": list(need_cards(view.needs, view)),
        "may_act": request.may_act,
    }
    return Part(name="head", template="session_head.html", values=values)


def past_page(request: PageRequest, view: SessionView, last: int, place: str, *parts: Part) -> Page:
    """A page of a session as it was at an entry before the last one; it does not change, and nothing can be done."""
    note = Part(name="past", template="past.html", values={"view": view, "last": last})
    made = session_page(request, replace(view, needs=()), place, f"Entry {view.seq}", *parts)
    return replace(made, parts=(note, *made.parts), is_live=False)


def session_page(request: PageRequest, view: SessionView, place: str, title: str, *parts: Part) -> Page:
    """A live page of a session, all of whose parts show the same entry of the journal."""
    return Page(
        title=f"{title} · {view.requirement}" if title else view.requirement,
        parts=(head(request, view), *parts),
        session=view.id,
        seq=view.seq,
        place=place,
    )
