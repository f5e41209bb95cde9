"""What a dashboard can do with a session: each act as a value, with the command that does the same, and its preview.

A dashboard never runs a session: what has to be run continues in an engine in the background.
"""

import shlex
from pathlib import Path
from typing import TypeAlias, assert_never

from msgspec import Struct

from iterdev.app import answer, completion, feedback, rollback
from iterdev.app.branches import clean
from iterdev.core.types import SessionId, TaskId
from iterdev.core.views.previews import (
    AcceptPreview,
    ArchivePreview,
    CleanPreview,
    ExportPreview,
    PullRequestPreview,
    ReopenPreview,
    ResumePreview,
    RetryPreview,
    RollbackPreview,
)
from iterdev.engine.repository import Repository

AnyPreview: TypeAlias = (
    AcceptPreview
    | ArchivePreview
    | CleanPreview
    | ExportPreview
    | PullRequestPreview
    | ReopenPreview
    | ResumePreview
    | RetryPreview
    | RollbackPreview
)
REASON = "the user wants it"
USER = "user"
"""The sender of messages that the user sends from a dashboard."""


class Answer(Struct, frozen=True, kw_only=True):
    session: SessionId
    gate: str
    choice: str


class Accept(Struct, frozen=True, kw_only=True):
    session: SessionId
    force: bool = False
    """Also work that is not known to be good."""


class Retry(Struct, frozen=True, kw_only=True):
    session: SessionId


class RollBack(Struct, frozen=True, kw_only=True):
    session: SessionId
    target: str
    reason: str = REASON


class Archive(Struct, frozen=True, kw_only=True):
    session: SessionId


class Reopen(Struct, frozen=True, kw_only=True):
    session: SessionId


class Clean(Struct, frozen=True, kw_only=True):
    """Removes the branches, refs and worktrees that are not needed; the folder and the journal stay."""

    session: SessionId


class Export(Struct, frozen=True, kw_only=True):
    session: SessionId
    path: str
    """The folder that what the session made is copied to; relative to the repository."""


class OpenPullRequest(Struct, frozen=True, kw_only=True):
    session: SessionId
    is_draft: bool = False


class Broadcast(Struct, frozen=True, kw_only=True):
    """A message of the user to all roles."""

    session: SessionId
    text: str


class Resume(Struct, frozen=True, kw_only=True):
    session: SessionId


class Comment(Struct, frozen=True, kw_only=True):
    session: SessionId
    text: str
    task: TaskId | None = None
    """The task that it is about."""
    severity: str = "medium"


Act: TypeAlias = (
    Answer
    | Accept
    | Retry
    | RollBack
    | Archive
    | Reopen
    | Clean
    | Export
    | OpenPullRequest
    | Resume
    | Broadcast
    | Comment
)


class Done(Struct, frozen=True, kw_only=True):
    text: str
    """What happened, in a sentence."""
    commands: tuple[str, ...]
    """The commands that would have done the same."""


def command(act: Act) -> str:
    """What a user would type in a shell to do the same."""
    match act:
        case Answer(session=session, gate=gate, choice=choice):
            words = ["answer", session, gate, choice]
        case Accept(session=session, force=force):
            words = ["accept", session, *(["--force"] if force else [])]
        case Retry(session=session):
            words = ["retry", "--detach", session]
        case RollBack(session=session, target=target, reason=reason):
            words = ["rollback", session, target, *([] if reason == REASON else ["--reason", reason])]
        case Archive(session=session):
            words = ["archive", session]
        case Reopen(session=session):
            words = ["reopen", session]
        case Clean(session=session):
            words = ["clean", session]
        case Export(session=session, path=path):
            words = ["export", session, path]
        case OpenPullRequest(session=session, is_draft=is_draft):
            words = ["pr", session, *(["--draft"] if is_draft else [])]
        case Resume(session=session):
            words = ["resume", "--detach", session]
        case Broadcast(session=session, text=text):
            words = ["team", "broadcast", "--session-id", session, "--from", USER, "--summary", text]
        case Comment(session=session, text=text, severity=severity):
            words = ["feedback", "add", "--session-id", session, "--severity", severity, text]
        case _:
            assert_never(act)
    return shlex.join(["iterdev", *words])


def preview(repository: Repository, act: Act) -> AnyPreview | None:
    """What an act would do, for those that change more than they say. Nothing is changed."""
    match act:
        case Accept(session=session):
            return completion.preview_accept(repository, session)
        case Retry() | Resume():
            return _preview_of_going_on(repository, act)
        case RollBack(session=session, target=target):
            return rollback.preview_rollback(repository, session, target)
        case Archive(session=session):
            return completion.preview_archive(repository, session)
        case Reopen(session=session):
            return completion.preview_reopen(repository, session)
        case Clean(session=session):
            return clean.preview_clean(repository, session)
        case Export(session=session, path=path):
            return completion.preview_export(repository, session, _target(repository, path))
        case OpenPullRequest():
            return _preview_of_pull_request(repository, act)
        case Answer() | Broadcast() | Comment():
            return None
        case _:
            assert_never(act)


def perform(repository: Repository, act: Act) -> Done:
    """Carries the act out; raises `IterdevError` where the command would."""
    match act:
        case Answer(session=session, gate=gate, choice=choice):
            answered = answer.answer(repository, session, gate, choice)
            return _done(act, f"{gate}: {answered.choice}{_goes_on(act, running=answered.view.running)}")
        case Accept(session=session, force=force):
            accepted = completion.accept(repository, session, force=force)
            notes = "".join(f"; {note}" for note in accepted.notes)
            return _done(act, f"{accepted.branch} is now at {accepted.commit[:12]} with the work of {session}{notes}")
        case Retry() | Resume():
            return _go_on(repository, act)
        case RollBack(session=session, target=target, reason=reason):
            undone = rollback.roll_back(repository, session, target, reason)
            undo = f"; {undone.accepted.branch} keeps it, undo it there with: {undone.undo}" if undone.accepted else ""
            text = f"{undone.branch} is at {undone.tip[:12]} again, as before {target}; undone: "
            return _done(act, f"{text}{', '.join(undone.undone)}{undo}")
        case Archive(session=session):
            completion.archive(repository, session)
            return _done(act, f"{session} is archived; its branch and its files stay")
        case Reopen(session=session):
            completion.reopen(repository, session)
            return _done(act, f"{session} is not archived any more")
        case Clean():
            return _clean(repository, act)
        case Export(session=session, path=path):
            exported = completion.export(repository, session, _target(repository, path)).outcome.exported
            return _done(act, f"what {session} made is in {exported}, and the session is archived")
        case OpenPullRequest():
            return _open_pull_request(repository, act)
        case Broadcast():
            return _broadcast(repository, act)
        case Comment():
            return _comment(repository, act)
        case _:
            assert_never(act)


def _done(act: Act, text: str, *others: str) -> Done:
    return Done(text=text, commands=(command(act), *others))


def _goes_on(act: Answer, *, running: bool) -> str:
    return "" if running else f"; continue with: {command(Resume(session=act.session))}"


def _target(repository: Repository, path: str) -> Path:
    return repository.top / Path(path).expanduser()


def _preview_of_pull_request(repository: Repository, act: OpenPullRequest) -> PullRequestPreview:
    from iterdev.app.branches import pull_request  # noqa: PLC0415 - it loads the client of GitHub

    options = pull_request.PullRequestOptions(is_draft=act.is_draft)
    return pull_request.preview_pull_request(repository, act.session, options)


def _open_pull_request(repository: Repository, act: OpenPullRequest) -> Done:
    from iterdev.app.branches import pull_request  # noqa: PLC0415 - it loads the client of GitHub

    options = pull_request.PullRequestOptions(is_draft=act.is_draft)
    opened = pull_request.open_pull_request(repository, act.session, options=options)
    return _done(act, f"{opened.url} is {'open' if opened.is_new else 'up to date'}")


def _broadcast(repository: Repository, act: Broadcast) -> Done:
    from iterdev.app import team_tools  # noqa: PLC0415 - it loads the engine, which other acts do not need

    return _done(act, f"{team_tools.broadcast(repository, act.session, act.text, sender=USER)} was sent to all roles")


def _preview_of_going_on(repository: Repository, act: Retry | Resume) -> RetryPreview | ResumePreview:
    from iterdev.app import resume  # noqa: PLC0415 - it loads the engine, which other acts do not need

    make = resume.preview_retry if isinstance(act, Retry) else resume.preview_resume
    return make(repository, act.session)


def _go_on(repository: Repository, act: Retry | Resume) -> Done:
    """Has an engine in the background do what is left, or repeat what failed."""
    from iterdev.app import resume  # noqa: PLC0415 - it loads the engine, which other acts do not need

    if isinstance(act, Retry):
        resume.retry(repository, act.session)
    engine = resume.detach(repository, act.session, resumes=isinstance(act, Resume))
    return _done(act, f"the engine runs in the background in process {engine.pid}")


def _clean(repository: Repository, act: Clean) -> Done:
    done = clean.clean(repository, act.session)
    undo = shlex.join(["iterdev", "clean", "--undo", act.session])
    text = (
        f"{len(done.removed)} removed, {len(done.kept)} kept; branches and refs come back within 30 days with: {undo}"
    )
    return _done(act, text)


def _comment(repository: Repository, act: Comment) -> Done:
    item = feedback.add(repository, act.session, act.text, severity=act.severity, category="general")
    if act.task is None:
        return _done(act, f"{item.feedback_id} is kept as feedback of {item.severity} severity")
    feedback.link(repository, act.session, item.feedback_id, act.task)
    link = shlex.join(["iterdev", "feedback", "link", act.session, item.feedback_id, act.task])
    return _done(act, f"{item.feedback_id} is kept as feedback on {act.task}", link)
