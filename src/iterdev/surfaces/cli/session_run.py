"""Runs a session, shows it, and prints how it ended; for run, resume, retry and demo."""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import anyio
import anyio.to_thread
import click
from msgspec import Struct

from iterdev.app import answer, completion, resume, start
from iterdev.app.branches import diff
from iterdev.app.remote.executor import MakeExecutor, executor_for
from iterdev.app.resume import BeforeStarts, OneStep, OneWorker, RunObserver, RunResult
from iterdev.app.sessions import Repository, SessionChoice, main_worktree, to_work_in
from iterdev.core.errors import IterdevError, UserError
from iterdev.core.types import Ending, SessionId
from iterdev.core.views.gates import DIFF, EDIT, GateView
from iterdev.core.views.session import session_document
from iterdev.surfaces.cli import acceptance, event_loop, exit_codes
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.output import prompt
from iterdev.surfaces.cli.output.console import (
    print_alert,
    print_document,
    print_either,
    print_error,
    print_line,
    print_text,
    print_warning,
)
from iterdev.surfaces.cli.output.text import completion_text, summary

SHOWN = 5
"""Uncommitted changes that are named."""


def choose_session(found: SessionId | SessionChoice) -> SessionId:
    """The session that was found, or that the user chooses."""
    if not isinstance(found, SessionChoice):
        return found
    if not prompt.can_ask():
        return found.unasked()
    sessions = found.sessions
    return SessionId(click.prompt("Which session?", type=click.Choice(sessions), default=sessions[-1]))


async def _ask(repository: Repository, session: SessionId, gate: GateView) -> str | None:
    """Asks in the terminal; the plan can be edited first."""
    choice = await prompt.ask(gate)
    if choice == EDIT:
        await anyio.to_thread.run_sync(_edit_plan, repository, session)
    return choice


def _edit_plan(repository: Repository, session: SessionId) -> None:
    """Opens the plan in the user's editor. A plan that is not valid is reported, and kept for the next edit."""
    draft = answer.plan_draft(repository, session)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        click.edit(filename=str(draft), editor=editor)
        answer.take_over_plan(repository, session, draft)
    except click.ClickException:
        print_warning(f'iterdev: The editor "{editor}" failed; the plan is unchanged')
        print_warning(f"hint: answer q, then: EDITOR=vi iterdev resume {session}")
    except UserError as error:
        print_warning(f"iterdev: {error.message}")
        print_warning(f"The plan is unchanged; your edit is kept for the next one: {draft}")


@contextmanager
def _observer(repository: Repository, session: SessionId, *, quiet: bool) -> Iterator[RunObserver]:
    """Shows a run: live in a terminal, as plain lines anywhere else."""
    ask = partial(_ask, repository, session)
    if quiet:
        yield RunObserver(notify=print_warning, alert=print_alert)
    elif prompt.is_terminal():
        from iterdev.surfaces.cli.output.live import Live  # noqa: PLC0415 - rich takes 60 ms to load

        with Live(ask=ask) as live:
            yield RunObserver(
                show=live.show,
                agent_output=live.agent_output,
                ask=live.ask,
                notify=live.notify,
                alert=print_alert,
            )
    else:
        print_line(f"session {session}")
        yield RunObserver(progress=print_line, notify=print_warning, ask=ask, alert=print_alert)


def request_text(text: tuple[str, ...], file: Path | None, command: str) -> str:
    """The request, which may be in a file or come from standard input."""
    if text and file:
        raise UserError(f'TEXT and "--file {file}" exclude each other', hint=f"iterdev {command} --file {file}")
    if text == ("-",) or file == Path("-"):
        return start.read_request_from(sys.stdin.buffer)
    return start.read_request(file) if file else " ".join(text)


def exclude_detached_role(role: str | None, *, detach: bool) -> None:
    if role and detach:
        raise UserError("--role and --detach exclude each other", hint="omit --role to run the whole team")


def start_warnings(repository: Repository) -> None:
    """What the user should know before agents start: they see only commits, and sessions belong to a worktree."""
    if changes := start.uncommitted(repository):
        rest = f" and {len(changes) - SHOWN} more" if len(changes) > SHOWN else ""
        count = f"{len(changes)} uncommitted change{'' if len(changes) == 1 else 's'}"
        print_warning(f"warning: agents do not see {count}: {', '.join(changes[:SHOWN])}{rest}")
    if main := main_worktree(repository):
        print_warning(f"warning: this is a linked worktree of {main}; removing it deletes its sessions too")


class Addition(Struct, frozen=True, kw_only=True):
    """What was done at the end of a run, as text and for the JSON document."""

    text: str
    fields: Mapping[str, object]


def show_run(
    repository: Repository,
    session: SessionId,
    *,
    auto: bool = False,
    resumes: bool = False,
    scope: BeforeStarts | OneStep | OneWorker | None = None,
    as_json: bool = False,
    at_end: Callable[[Repository, SessionId], Addition] | None = None,
) -> ExitCode:
    """`at_end` is called when the session is over."""
    result = run_session(repository, session, auto=auto, resumes=resumes, scope=scope, quiet=as_json)
    return _show_result(repository, session, result, as_json=as_json, at_end=at_end)


def show_worker(repository: Repository, name: str, words: str, scope: OneWorker, *, as_json: bool) -> ExitCode:
    """Does the next task of one role, in the session that the words name, or that has something for it."""
    session = choose_session(to_work_in(repository, name, words))
    return show_run(repository, session, scope=scope, as_json=as_json)


def show_detached(
    repository: Repository, session: SessionId, *, auto: bool = False, resumes: bool = False, as_json: bool = False
) -> ExitCode:
    """Has the session run in the background, and prints its id alone, for scripts."""
    if resume.is_done(repository, session):
        return show_run(repository, session, auto=auto, resumes=resumes, as_json=as_json)
    engine = resume.detach(repository, session, auto=auto, resumes=resumes)
    print_either(session, session_document(engine.view) | {"pid": engine.pid, "log": engine.log}, as_json=as_json)
    if not as_json:
        follow = f"Follow it with: iterdev follow {session}\nStop it with: kill {engine.pid}"
        print_warning(f"It has ended; see {engine.log}" if engine.has_ended else f"In the background. {follow}")
    return ExitCode.finished


def _executor(repository: Repository) -> MakeExecutor:
    """A test may have given one to the command line."""
    given: MakeExecutor | None = click.get_current_context().obj
    return given or executor_for(repository)


def run_detached(repository: Repository, session: SessionId) -> ExitCode:
    """Is the engine that `show_detached` starts; what it prints is in a file."""
    observer = RunObserver(progress=print_line, notify=print_warning)
    executor = _executor(repository)
    result = event_loop.run(partial(resume.run_detached, executor=executor), repository, session, observer)
    return _show_result(repository, session, result, as_json=False)


def run_session(
    repository: Repository,
    session: SessionId,
    *,
    auto: bool = False,
    resumes: bool = False,
    scope: BeforeStarts | OneStep | OneWorker | None = None,
    quiet: bool = False,
) -> RunResult:
    """Runs the session and shows what happens meanwhile, unless that is not wanted."""
    with _observer(repository, session, quiet=quiet or resume.is_done(repository, session)) as observer:
        executor = _executor(repository)
        run = partial(resume.run_session, auto=auto, resumes=resumes, scope=scope, executor=executor)
        return event_loop.run(run, repository, session, observer)


def show_step(repository: Repository, session: SessionId, *, auto: bool, as_json: bool) -> ExitCode:
    with _observer(repository, session, quiet=as_json or resume.is_done(repository, session)) as observer:
        executor = _executor(repository)
        take = partial(resume.take_step, auto=auto, executor=executor)
        result = event_loop.run(take, repository, session, observer)
    return _show_result(repository, session, result, as_json=as_json)


def _show_result(
    repository: Repository,
    session: SessionId,
    result: RunResult,
    *,
    as_json: bool,
    at_end: Callable[[Repository, SessionId], Addition] | None = None,
) -> ExitCode:
    if result.failure:
        print_warning(f"iterdev: {result.failure.choice} failed: {result.failure.error}")
    code = exit_code(result)
    if at_end and result.ending is not Ending.over:
        at_end = None
    if as_json:
        more = at_end(repository, session).fields if at_end else {}
        print_document(session_document(result.view) | {"exit_code": code, **more})
        return code
    print_text(summary(result.view, result.ending))
    if at_end:
        print_text(at_end(repository, session).text)
    if result.idle_role:
        print_text(f"Nothing is ready for the {result.idle_role}; see what waits: iterdev status {session}")
    if result.ending is Ending.over and _complete(repository, session) == completion.CompletionChoice.retry:
        resume.retry(repository, session)
        return show_run(repository, session)
    return code


def exit_code(result: RunResult) -> ExitCode:
    return exit_codes.of_ending(result.ending, succeeded=result.view.outcome.succeeded)


def _accept(repository: Repository, session: SessionId) -> None:
    """What `iterdev accept` does; an error does not end the question."""
    try:
        acceptance.accept(repository, session)
    except IterdevError as error:
        print_error(error)


def _complete(repository: Repository, session: SessionId) -> str | None:
    """Asks how to complete a finished session, and does it unless its failed tasks are to be retried."""
    while True:
        question = completion.question(repository, session)
        choice = event_loop.run(prompt.ask, question) if question else None
        if choice == DIFF:
            diff.show(repository, diff.change_of(repository, session), plain=not prompt.is_terminal())
        elif choice == completion.CompletionChoice.accept:
            _accept(repository, session)
        else:
            break
    if choice is None or choice == completion.CompletionChoice.retry:
        return choice
    target = Path(click.prompt("Export to which folder?")) if choice == completion.CompletionChoice.export else None
    view, failure = completion.complete(repository, session, choice, target)
    if failure:
        print_warning(f"iterdev: {failure.choice} failed: {failure.error}")
    print_text(completion_text(view))
    return choice
