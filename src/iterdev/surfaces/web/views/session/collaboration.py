"""W12, W13, W14: what the tasks of a session share: locks, conflicts, messages, discoveries and what they learned."""

import json

from iterdev.app.live import acts
from iterdev.app.live.acts import Broadcast
from iterdev.surfaces.web.page import ActRequest, Done, Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page

LONGEST = 2000
"""Characters of the data of a message or a discovery."""


def locks(request: PageRequest) -> Page:
    with request.session() as watched:
        view, held, conflicts = watched.view(room=0), watched.locks(), watched.conflicts()
    values = {"view": view, "locks": held, "conflicts": conflicts}
    return session_page(request, view, "locks", "Locks", Part(name="locks", template="locks.html", values=values))


def bus(request: PageRequest) -> Page:
    sender, to, kind = (request.query.get(name, "") for name in ("from", "to", "type"))
    with request.session() as watched:
        view = watched.view(room=0)
        found = watched.messages(sender=sender, to=to, kind=kind, page=request.number("page", 1))
    values = {
        "view": view,
        "bus": found,
        "sender": sender,
        "to": to,
        "kind": kind,
        "text": text_of,
        "may_act": request.may_act,
    }
    return session_page(request, view, "bus", "Messages", Part(name="bus", template="bus.html", values=values))


def broadcast(request: ActRequest) -> Done:
    said = Broadcast(session=request.session, text=request.fields.get("text", ""))
    with request.repository() as repository:
        done = acts.perform(repository, said)
    return Done(what=done.commands[0], go_to=f"/s/{said.session}/bus")


def board(request: PageRequest) -> Page:
    with request.session() as watched:
        view, found, notes = watched.view(room=0), watched.discoveries(), watched.notes()
    values = {"view": view, "discoveries": found[::-1], "notes": notes, "text": text_of}
    return session_page(request, view, "board", "Board", Part(name="board", template="board.html", values=values))


def text_of(data: object) -> str:
    """Data of an agent as text."""
    return json.dumps(data, ensure_ascii=False, default=str)[:LONGEST] if data else ""
