"""W18: what an act would do, before it does it. The form is good only for the state that was shown."""

from collections.abc import Callable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from iterdev.app import completion, resume, rollback
from iterdev.app.sessions import Repository
from iterdev.core.errors import UserError
from iterdev.core.types import SessionId, Status
from iterdev.core.views.pages.task_list import TaskFilter
from iterdev.core.views.previews import Preview
from iterdev.surfaces.web.page import ActRequest, Done, Moved, NoSuchPage, Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page


class Fields(Struct, frozen=True, kw_only=True):
    """What the form of an act says beside yes."""

    target: str = ""
    reason: str = ""
    force: bool = False


class Described(Struct, frozen=True, kw_only=True):
    title: str
    button: str
    preview: Callable[[Repository, SessionId, Fields], Preview]
    carry_out: Callable[[Repository, SessionId, Fields], object]
    is_grave: bool = False


def _retry(repository: Repository, session: SessionId) -> None:
    resume.retry(repository, session)
    resume.detach(repository, session)


ACTS: Mapping[str, Described] = {
    "accept": Described(
        title="Accept",
        button="Accept",
        preview=lambda repository, session, _: completion.preview_accept(repository, session),
        carry_out=lambda repository, session, fields: completion.accept(repository, session, force=fields.force),
    ),
    "retry": Described(
        title="Retry",
        button="Retry",
        preview=lambda repository, session, _: resume.preview_retry(repository, session),
        carry_out=lambda repository, session, _: _retry(repository, session),
    ),
    "rollback": Described(
        title="Roll back",
        button="Roll back",
        preview=lambda repository, session, fields: rollback.preview_rollback(repository, session, fields.target),
        carry_out=lambda repository, session, fields: rollback.roll_back(
            repository, session, fields.target, fields.reason
        ),
        is_grave=True,
    ),
    "archive": Described(
        title="Archive",
        button="Archive",
        preview=lambda repository, session, _: completion.preview_archive(repository, session),
        carry_out=lambda repository, session, _: completion.archive(repository, session),
    ),
    "resume": Described(
        title="Resume",
        button="Resume",
        preview=lambda repository, session, _: resume.preview_resume(repository, session),
        carry_out=lambda repository, session, _: resume.detach(repository, session, resumes=True),
    ),
}


def page(request: PageRequest) -> Page:
    name, target = request.arguments["act"], request.query.get("target", "")
    act = ACTS.get(name)
    if act is None:
        request.missing(f'There is no act "{name}"')
    with request.session() as watched:
        view = watched.view(room=0)
        targets = watched.tasks(TaskFilter(status=Status.completed)).tasks
    with request.repository() as repository:
        preview = act.preview(repository, view.id, Fields(target=target))
    values = {
        "name": name,
        "act": act,
        "preview": preview,
        "kind": type(preview).__name__,
        "target": target,
        "targets": targets,
        "waves": view.waves,
        "moved": "moved" in request.query,
        "may_act": request.may_act,
    }
    part = Part(name="preview", template="preview.html", values=values)
    made = session_page(request, view, "preview", act.title, part)
    return replace(made, seq=preview.seq, is_live=False)


def carry_out(request: ActRequest) -> Done:
    name, session = request.arguments["act"], request.session
    act = ACTS.get(name)
    if act is None:
        raise NoSuchPage(f'There is no act "{name}"')
    said = request.fields
    fields = Fields(target=said.get("target", ""), reason=said.get("reason", ""), force=said.get("force") == "1")
    with request.repository() as repository:
        preview = act.preview(repository, session, fields)
        if str(preview.seq) != said.get("seq"):
            raise Moved("The session has changed since this was shown; look at it again")
        if preview.refused:
            raise UserError(preview.refused.problem, hint=preview.refused.hint)
        act.carry_out(repository, session, fields)
    return Done(what=" ".join(filter(None, (name, fields.target))), go_to=f"/s/{session}")
