"""Accepts, archives, keeps, exports or reopens a finished session. Only `accept` moves a branch: the user's."""

import os
import shlex
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

import msgspec
from msgspec import Struct

from iterdev.app.edits import project
from iterdev.app.inspect import view
from iterdev.core import ids
from iterdev.core.errors import HostError, IterdevError, NeedsConfirmation, UserError
from iterdev.core.session.delivery import Accepted, AcceptUndone
from iterdev.core.session.events import Archived, Event, Gate, Kept, Reopened, Session, Warned
from iterdev.core.session.gates import CompletionChoice, GateKind, completion_choices, meant
from iterdev.core.session.lifecycle import DELIVERABLES, KEPT, PATCH
from iterdev.core.session.state import State
from iterdev.core.settings import FILE, Settings
from iterdev.core.types import UNSUCCESSFUL, AcceptStyle, CompletionAction, Phase, SessionId
from iterdev.core.views.gates import DIFF, GateView, gate_view
from iterdev.core.views.previews import (
    AcceptPreview,
    ArchivePreview,
    ExportPreview,
    Refusal,
    ReopenPreview,
    archive_preview,
    refusal,
    reopen_preview,
)
from iterdev.core.views.session import SessionView
from iterdev.engine.effects import NO_EFFECTS
from iterdev.engine.recovery import complete_accept, complete_run
from iterdev.engine.repository import Repository
from iterdev.execution.contract import Effect
from iterdev.host.git import commits, mirrors, refs
from iterdev.host.git.users_branch import acceptance
from iterdev.host.processes.identity import identity
from iterdev.store.session_log import SessionLog

MOST_TITLE = 72
"""Characters of the first line of a commit's message."""


class CompletionFailure(Struct, frozen=True):
    """A finished session could not be completed as chosen; it is kept instead."""

    choice: str
    error: str


class AcceptOptions(Struct, frozen=True, kw_only=True):
    """How the work is merged; what is None is as it was the last time, if the branch still has that work."""

    style: AcceptStyle | None = None
    own_author: bool | None = None
    """The agents' commits are rewritten with the user as their author."""


def preview_accept(
    repository: Repository,
    session: SessionId,
    options: AcceptOptions = AcceptOptions(),  # noqa: B008 - frozen
) -> AcceptPreview:
    """What `accept` would bring, and what is known about it. Nothing is changed."""
    state = repository.state(session)
    seen = view(repository, state)
    base, tip, into = state.branch.base, state.branch.tip, _into(repository, state)
    head = refs.resolve(repository.top, f"refs/heads/{into}")
    files = commits.changed_files(repository.top, base, tip)
    return AcceptPreview(
        session=session,
        seq=state.seq,
        command=" ".join(("iterdev accept", session, *_words(options))),
        refused=_refused(lambda: _check_accept(repository, state, options)),
        into=into,
        commits=commits.count(repository.top, base, tip),
        files=files,
        fast_forward=options.style in {None, AcceptStyle.fast_forward}
        and bool(head and refs.is_ancestor(repository.top, head, tip)),
        verdicts=seen.team.verdicts,
        warnings=(*seen.warnings, *_configuration_changes(repository.settings, files, base, tip)),
        reasons=_reasons(seen),
    )


def preview_archive(repository: Repository, session: SessionId) -> ArchivePreview:
    """What `archive` would do now. Nothing is changed."""
    state = repository.state(session)
    return archive_preview(state, _refused(lambda: _require_ended(repository, state)))


def preview_reopen(repository: Repository, session: SessionId) -> ReopenPreview:
    """What `reopen` would do now. Nothing is changed."""
    state = repository.state(session)

    def check() -> None:
        _require_ended(repository, state)
        _require_archived(state)

    return reopen_preview(state, _refused(check))


def preview_export(repository: Repository, session: SessionId, target: Path) -> ExportPreview:
    """What `export` would copy now. Nothing is changed."""
    state, folder = repository.state(session), target.expanduser().resolve()
    names = _deliverables(repository, state)

    def check() -> None:
        _require_ended(repository, state)
        _require_finished(state)
        _require_free(folder, names)

    return ExportPreview(
        session=session,
        seq=state.seq,
        command=shlex.join(["iterdev", "export", session, str(folder)]),
        refused=_refused(check),
        target=str(folder),
        names=(*names, PATCH),
    )


def _refused(check: Callable[[], object]) -> Refusal | None:
    try:
        check()
    except UserError as error:
        return refusal(error)
    return None


def _into(repository: Repository, state: State) -> str:
    return state.session.branch or refs.current_branch(repository.top)


def _reasons(seen: SessionView) -> tuple[str, ...]:
    return () if seen.outcome.succeeded else seen.outcome.reasons or ("the session is not finished",)


def _require_ended(repository: Repository, state: State) -> None:
    if repository.engine_alive(state.session):
        raise repository.still_running(state.session.id)
    _require_finished(state)


def _words(options: AcceptOptions) -> Iterator[str]:
    if options.style is AcceptStyle.squash:
        yield "--squash"
    if options.style is AcceptStyle.merge:
        yield "--no-ff"
    if options.own_author:
        yield "--author me"


def _check_accept(repository: Repository, state: State, options: AcceptOptions) -> None:
    """Raises `UserError` if the work cannot be brought in now; nothing is changed."""
    _require_ended(repository, state)
    _require_change(state)
    into, how = _into(repository, state), _how(repository, state, options)
    acceptance.merged_tree(repository.top, state.session.id, into, state.branch.tip, how.previous)


def _how(repository: Repository, state: State, options: AcceptOptions) -> acceptance.How:
    """Work that was accepted as other commits is accepted in the same way again: git would merge it a second time."""
    session, previous = state.session.id, state.delivery.accepted
    known = previous if previous and acceptance.base_of(repository.top, previous, state.branch.tip) else None
    style = options.style or (known.style if known else AcceptStyle.fast_forward)
    own_author = known.own_author if known and options.own_author is None else bool(options.own_author)
    if known and known.style is AcceptStyle.squash and style is not AcceptStyle.squash:
        problem = f'"{known.branch}" has earlier work of "{session}" as one commit, {known.commit[:12]}'
        raise UserError(problem, hint=f"iterdev accept {session} --squash")
    if known and known.own_author and not own_author and style is not AcceptStyle.squash:
        problem = f'"{known.branch}" has earlier work of "{session}" with you as its author'
        raise UserError(problem, hint=f"iterdev accept {session} --author me")
    return acceptance.How(style=style, own_author=own_author, message=_message(state), previous=previous)


def _message(state: State) -> str:
    """Of the one commit that all the work becomes: what was asked, with its first line as the title."""
    title, _, rest = state.session.requirement.strip().partition("\n")
    short = textwrap.shorten(title, MOST_TITLE, placeholder="…") or state.session.id
    body = "\n".join(part for part in (title if short != title else "", rest.strip()) if part)
    return "\n\n".join(part for part in (short, body, ids.session_trailer(state.session.id)) if part) + "\n"


def _require_change(state: State) -> None:
    session = state.session.id
    if state.branch.tip == state.branch.base:
        raise UserError(f'"{session}" has changed nothing', hint=f"iterdev report {session}")


def _configuration_changes(configured: Settings, files: tuple[str, ...], base: str, tip: str) -> Iterator[str]:
    """Changed files that decide what iterdev starts and says from now on; during the session they had no effect."""
    tables = configured.agents.values()
    commands = (word for table in tables for word in (*table.command, *table.acp, table.script or ""))
    roles = (table.file or "" for table in configured.roles.values())
    named = {str(PurePosixPath(word)) for word in (FILE, *commands, *roles) if word}
    for name in files:
        if name in named:
            what = "decides what iterdev runs" if name == FILE else f"is started or read because of {FILE}"
            yield f'"{name}" {what}, and the work changes it: git diff {base[:12]} {tip[:12]} -- {name}'


def accept(
    repository: Repository,
    session: SessionId,
    *,
    force: bool = False,
    options: AcceptOptions = AcceptOptions(),  # noqa: B008 - frozen
    effect: Effect = NO_EFFECTS,
) -> Accepted:
    """Brings the session's branch into the user's branch; work that is not known to be good only by `force`."""
    log = repository.log(session)
    _require_ended(repository, log.state)
    complete_run(repository, session, effect)
    log.refresh()
    state = log.state
    _require_change(state)
    if (reasons := _reasons(view(repository, state))) and not force:
        raise NeedsConfirmation(
            f'"{session}" is not known to be good: {"; ".join(reasons)}',
            hint=f"see `iterdev report {session}`; to accept it anyway: iterdev accept {session} --force",
        )
    with effect("complete accept"):
        complete_accept(repository, log)
    state = log.state
    into, how = _into(repository, state), _how(repository, state, options)

    def event(merged: acceptance.Merged) -> Accepted:
        return Accepted(
            into,
            merged.commit,
            merged.notes,
            before=merged.before,
            work=state.branch.tip,
            style=how.style,
            own_author=how.own_author,
        )

    def record(merged: acceptance.Merged) -> None:
        with effect("record", events="Accepted"):
            log.record(event(merged))

    merged = acceptance.accept(repository.top, session, into, state.branch.tip, how, record=record, effect=effect)
    if not merged.before:
        # The branch has the work already: by an earlier accept, or because the user merged it.
        if (known := state.delivery.accepted) and state.lifecycle.accepted and known.work == state.branch.tip:
            return msgspec.structs.replace(known, notes=merged.notes)
        record(merged)
    return event(merged)


def undo_accept(repository: Repository, session: SessionId, *, effect: Effect = NO_EFFECTS) -> AcceptUndone:
    """Moves the user's branch back to where it was before the work came; only if nothing followed there."""
    log = repository.log(session)
    if repository.engine_alive(log.state.session):
        raise repository.still_running(session)
    if isinstance(done := complete_accept(repository, log), AcceptUndone):
        return done
    accepted = log.state.delivery.accepted
    if accepted is None:
        raise UserError(f'"{session}" is not accepted', hint=f"iterdev accept {session}")
    undone = AcceptUndone(accepted.branch, accepted.before)

    def record() -> None:
        with effect("record", events="AcceptUndone"):
            log.record(undone)

    acceptance.take_back(repository.top, session, accepted, record=record, effect=effect)
    return undone


def archive(repository: Repository, session: SessionId, *, exported: str = "") -> SessionView:
    """Removes the session's worktrees and temporary files, and archives it."""
    with _finished(repository, session) as log:
        repository.workspaces(session).close()
        return _record(repository, log, *_removed_from_remote(repository, log.state.session), Archived(exported))


def _removed_from_remote(repository: Repository, session: Session) -> Sequence[Event]:
    """Removes what engine and hosts have exchanged through the git remote, unless the remote is unavailable."""
    if repository.runs_here:
        return ()
    try:
        address = mirrors.remote_address(repository.top, repository.settings.remote.git)
        for suffix in (*session.former_suffixes, session.suffix):
            mirrors.remove_refs(repository.top, address, ids.shared_name(session.id, suffix))
    except IterdevError as error:
        return (Warned(f"the refs of the session were left on its git remote: {error.message}"),)
    return ()


def keep(repository: Repository, session: SessionId) -> SessionView:
    with _finished(repository, session) as log:
        return view(repository, log.state) if log.state.lifecycle.kept else _record(repository, log, Kept())


def reopen(repository: Repository, session: SessionId) -> SessionView:
    with _finished(repository, session) as log:
        _require_archived(log.state)
        return _record(repository, log, Reopened(), *log.team.reopened(log.state))


def export(repository: Repository, session: SessionId, target: Path) -> SessionView:
    """Copies the results of the session to a folder, then archives it; no existing file is overwritten."""
    folder = target.expanduser().resolve()
    with _finished(repository, session) as log:
        project(repository, log)
        _copy(repository, log.state, folder)
    return archive(repository, session, exported=str(folder))


def answer(repository: Repository, session: SessionId, choice: str) -> SessionView:
    """Answers the question how to complete a finished session."""
    offered = _choices(repository, repository.state(session))
    commands = {
        CompletionChoice.accept: f"iterdev accept {session}",
        CompletionChoice.export: f"iterdev export {session} PATH",
        CompletionChoice.retry: f"iterdev retry {session}",
    }
    chosen = meant(offered, choice)
    if chosen is None:
        raise UserError(f'"{choice}" is not an answer to "{GateKind.completion}"', hint=f"one of: {', '.join(offered)}")
    if chosen in commands:
        raise UserError(f'"{chosen}" is a command of its own', hint=commands[CompletionChoice(chosen)])
    return archive(repository, session) if chosen == CompletionChoice.archive else keep(repository, session)


def question(repository: Repository, session: SessionId) -> GateView | None:
    """The question at the end of a run, if the configuration leaves it to the user and it is not answered yet."""
    state = repository.state(session)
    action, over = repository.settings.session.completion_action, state.lifecycle
    interactive = action is CompletionAction.interactive and not state.policy.auto
    if not interactive or over.phase is Phase.archived or state.why not in {"", KEPT}:
        return None
    question = "The pipeline is complete. What now?"
    gate = Gate(kind=GateKind.completion, question=question, choices=_choices(repository, state))
    actions = (DIFF,) if state.branch.tip != state.branch.base else ()
    return gate_view(gate, repository.team(state), state, actions=actions)


def complete_as_configured(repository: Repository, session: SessionId) -> CompletionFailure | None:
    """Archives or keeps a session that is over, if the configuration says so."""
    phase = repository.state(session).lifecycle.phase
    match repository.settings.session.completion_action:
        case CompletionAction.auto_archive if phase is not Phase.archived:
            return complete(repository, session, CompletionChoice.archive)[1]
        case CompletionAction.auto_keep if phase is Phase.completed:
            return complete(repository, session, CompletionChoice.keep)[1]
        case _:
            return None


def complete(
    repository: Repository, session: SessionId, choice: str, target: Path | None = None
) -> tuple[SessionView, CompletionFailure | None]:
    """Carries out the choice. Completion must not harm finished work: when it fails, the session is kept."""
    try:
        if choice == CompletionChoice.archive:
            return archive(repository, session), None
        if choice == CompletionChoice.export and target:
            return export(repository, session, target), None
    except (IterdevError, OSError) as error:
        return keep(repository, session), CompletionFailure(choice, str(error))
    return keep(repository, session), None


def _choices(repository: Repository, state: State) -> tuple[str, ...]:
    failed = tuple(task.id for task, progress in state.tasks.rows() if progress.status in UNSUCCESSFUL)
    failures = bool(repository.team(state).retried(state, failed))
    acceptable = state.branch.tip != state.branch.base and not state.lifecycle.accepted
    succeeded = view(repository, state).outcome.succeeded
    return completion_choices(succeeded=succeeded, failures=failures, acceptable=acceptable)


def _record(repository: Repository, log: SessionLog, *events: Event) -> SessionView:
    log.record(*events)
    project(repository, log)
    return view(repository, log.state)


@contextmanager
def _finished(repository: Repository, session: SessionId) -> Iterator[SessionLog]:
    """A session whose work is done, and that no engine can run meanwhile."""
    log = repository.log(session)
    if log.state.lifecycle.is_finished:
        complete_run(repository, session, NO_EFFECTS)
    with repository.lease(log):
        _require_finished(log.state)
        if me := identity(os.getpid()):
            # If this process is killed, the next command writes the files of the session folder.
            repository.journal.take(session, me)
        try:
            yield log
        except IterdevError:
            repository.journal.release(session)
            raise
        repository.journal.release(session)


def _require_finished(state: State) -> None:
    if not state.lifecycle.is_finished:
        raise UserError(f'"{state.session.id}" is not finished', hint=f"iterdev resume {state.session.id}")


def _require_archived(state: State) -> None:
    if state.lifecycle.phase is not Phase.archived:
        raise UserError(f'"{state.session.id}" is not archived', hint=f"iterdev status {state.session.id}")


def _deliverables(repository: Repository, state: State) -> list[str]:
    """The files and folders of the session folder that a user wants to have."""
    folder = repository.folder(state)
    return [name for name in (*DELIVERABLES, *repository.team(state).folders) if (folder / name).exists()]


def _require_free(target: Path, names: Sequence[str]) -> None:
    taken = [name for name in (*names, PATCH) if (target / name).exists()]
    if taken or (target.exists() and not target.is_dir()):
        what = target / taken[0] if taken else target
        raise UserError(f'"{what}" already exists', hint="name an empty or a new folder")


def _copy(repository: Repository, state: State, target: Path) -> None:
    folder, names = repository.folder(state), _deliverables(repository, state)
    _require_free(target, names)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in names:
            _copy_entry(folder / name, target / name)
    except OSError as error:
        raise HostError(f'Cannot write to "{target}": {error.strerror or error}', hint="name another folder") from error
    commits.write_patch(repository.top, state.branch.base, state.branch.tip, (target / PATCH).absolute())


def _copy_entry(source: Path, target: Path) -> None:
    """An agent without a sandbox may have left links in the folder; what they point to is not a part of the session."""
    if source.is_dir() and not source.is_symlink():
        shutil.copytree(source, target, symlinks=True)
    else:
        shutil.copy2(source, target, follow_symlinks=False)
