"""W18: what an act would do, before it does it. The form is good only for the state that was shown."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from iterdev.app.live import acts
from iterdev.app.live.acts import (
    Accept,
    Act,
    Archive,
    Clean,
    Export,
    OpenPullRequest,
    Reopen,
    Resume,
    Retry,
    RollBack,
)
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId, Status
from iterdev.core.views.pages.task_list import TaskFilter
from iterdev.surfaces.web.page import ActRequest, Done, Moved, NoSuchPage, Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page

TITLES = {
    "accept": "Accept",
    "retry": "Retry",
    "rollback": "Roll back",
    "archive": "Archive",
    "reopen": "Reopen",
    "clean": "Clean",
    "export": "Export",
    "pr": "Pull request",
    "resume": "Resume",
}
BUTTONS = {"pr": "Push and open"}
"""What the button says, where it is not the title."""
AIMED = frozenset({"rollback", "export"})
"""Acts that need a target before they can be shown: a task or a wave, or a folder."""
GRAVE = frozenset({"rollback", "clean"})
Fields = Mapping[str, str]
ACTS: Mapping[str, Callable[[SessionId, Fields], Act]] = {
    "accept": lambda session, fields: Accept(session=session, force=fields.get("force") == "1"),
    "retry": lambda session, _: Retry(session=session),
    "rollback": lambda session, fields: RollBack(
        session=session, target=fields.get("target", ""), reason=fields.get("reason", "").strip() or acts.REASON
    ),
    "archive": lambda session, _: Archive(session=session),
    "reopen": lambda session, _: Reopen(session=session),
    "clean": lambda session, _: Clean(session=session),
    "export": lambda session, fields: Export(session=session, path=fields.get("target", "").strip()),
    "pr": lambda session, fields: OpenPullRequest(session=session, is_draft=fields.get("draft") == "1"),
    "resume": lambda session, _: Resume(session=session),
}


def page(request: PageRequest) -> Page:
    name, target = request.arguments["act"], request.query.get("target", "")
    if name not in ACTS:
        request.missing(f'There is no act "{name}"')
    with request.session() as watched:
        view = watched.view(room=0)
        targets = watched.tasks(TaskFilter(status=Status.completed)).tasks
    act = ACTS[name](view.id, {"target": target})
    preview = None
    if target or name not in AIMED:
        with request.repository() as repository:
            preview = acts.preview(repository, act)
    values = {
        "name": name,
        "title": TITLES[name],
        "button": BUTTONS.get(name, TITLES[name]),
        "is_grave": name in GRAVE,
        "preview": preview,
        "kind": type(preview).__name__,
        "command_line": acts.command(act),
        "target": target,
        "targets": targets,
        "waves": view.waves,
        "moved": "moved" in request.query,
        "may_act": request.may_act,
    }
    part = Part(name="preview", template="preview.html", values=values)
    made = session_page(request, replace(view, needs=()), "preview", TITLES[name], part)
    return replace(made, seq=preview.seq if preview else view.seq, is_live=False)


def carry_out(request: ActRequest) -> Done:
    name, session = request.arguments["act"], request.session
    if name not in ACTS:
        raise NoSuchPage(f'There is no act "{name}"')
    if name in AIMED and not request.fields.get("target", "").strip():
        raise UserError(f"{TITLES[name]} needs a target", hint=acts.command(ACTS[name](session, {"target": "TARGET"})))
    act = ACTS[name](session, request.fields)
    with request.repository() as repository:
        preview = acts.preview(repository, act)
        if preview is None or str(preview.seq) != request.fields.get("seq"):
            raise Moved("The session has changed since this was shown; look at it again")
        if preview.refused:
            raise UserError(preview.refused.problem, hint=preview.refused.hint)
        done = acts.perform(repository, act)
    return Done(what=done.commands[0], go_to=f"/s/{session}")
