"""What each tool does: a function of `app`, in a thread, and what the client's model is told of it."""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TypeVar, assert_never

import anyio
import anyio.from_thread
import msgspec
from anyio.to_thread import run_sync
from msgspec import Struct

from iterdev.app import answer as answers
from iterdev.app import completion, feedback, inspect, resume, rollback
from iterdev.app.branches import diff as diffs
from iterdev.app.issues import edit, queue, show
from iterdev.app.live.background import interrupt
from iterdev.app.live.commands import run_command
from iterdev.app.live.watch import INTERVAL, SessionWatch
from iterdev.app.sessions import (
    Repository,
    elsewhere,
    named_or_last_active,
    named_or_last_finished,
    refuse_inside_attempt,
    without_secrets,
)
from iterdev.core.errors import IterdevError, UserError
from iterdev.core.types import SessionId
from iterdev.core.views.session import SessionView, session_document
from iterdev.mcp import messages
from iterdev.mcp.messages import Document, RequestRefused
from iterdev.mcp.server import Call
from iterdev.mcp.tools import Asked, Begun, CallRejected, Response, Text, ToolAnswer, as_json
from iterdev.surfaces.mcp import session_tasks, tools
from iterdev.surfaces.mcp.client import Client
from iterdev.surfaces.mcp.session_tasks import Standing, standing

T = TypeVar("T")

ROOM = 20
"""Tasks that are shown: an answer stays in the context of the client's model."""
LONGEST_PATCH = 20_000
"""Characters of a patch."""
STILL_THERE = 60.0
"""Seconds between two reports of progress: a client may give up on a call that is silent."""
LOOK = 1.0
"""Seconds between two looks whether an engine is still there, if nothing is written."""


class Seen(Struct, frozen=True, kw_only=True):
    view: SessionView
    report: str
    now: float


class Calls:
    """The tools and the tasks of the sessions of one repository."""

    def __init__(self, folder: Path, client: Client, environment: Mapping[str, str] = os.environ) -> None:
        self._folder, self._client, self._environment = folder, client, environment

    async def use(self, asked: Struct, call: Call) -> ToolAnswer:
        if isinstance(asked, tools.Wait):
            return await self._wait(asked, call)
        return await self._in_thread(partial(self._done, asked, call))

    async def get(self, task: str) -> Document:
        seen = await self._of_task(partial(self._seen, task))
        return session_tasks.task(seen.view, seen.report, seen.now)

    async def update(self, task: str, responses: Mapping[str, Response]) -> None:
        await self._of_task(partial(self._answer_open, task, responses))

    async def cancel(self, task: str) -> None:
        def stop() -> None:
            self._for_people("cancel")
            with self._opened() as repository:
                interrupt(repository, repository.find(task))

        await self._of_task(stop)

    async def _in_thread(self, act: Callable[[], T]) -> T:
        """Runs in a thread; an error becomes a response of the tool, and the server continues."""
        try:
            return await run_sync(act)
        except IterdevError as error:
            raise CallRejected(self._sentence(error)) from error
        except OSError as error:
            raise CallRejected(f"{error.strerror or error}: {error.filename or ''}".rstrip(": ")) from error
        except CallRejected:
            raise
        except Exception as error:
            raise CallRejected(self._redacted(f"a defect of iterdev: {type(error).__name__}: {error}")) from error

    async def _of_task(self, act: Callable[[], T]) -> T:
        """What a thread does with a task; one that is not known is an error of the request."""
        try:
            return await run_sync(act)
        except UserError as error:
            raise RequestRefused(messages.INVALID_PARAMS, self._sentence(error)) from error
        except (IterdevError, OSError) as error:
            raise RequestRefused(messages.INTERNAL_ERROR, self._redacted(str(error))) from error

    def _sentence(self, error: IterdevError) -> str:
        return self._redacted(f"{error.message}\nhint: {error.hint}" if error.hint else error.message)

    def _redacted(self, text: str) -> str:
        return without_secrets(text, self._folder)

    def _for_people(self, what: str) -> None:
        """An agent may not act as a person: the server may have been started inside of an attempt."""
        refuse_inside_attempt(what, self._environment, self._folder)

    def _done(self, asked: Struct, call: Call) -> ToolAnswer:
        if type(asked) not in tools.READING:
            self._for_people(f"mcp ({type(asked).__name__})")
        match asked:
            case tools.Run():
                options = _options({"--pipeline": asked.pipeline, "-c": asked.concurrency}, yes=asked.yes)
                return self._start("run", asked.line, asked.text, options, call)
            case tools.Resolve():
                options = _options({"--mode": asked.mode, "-c": asked.concurrency}, yes=asked.yes)
                return self._start("resolve", asked.line, asked.text, options, call)
            case tools.Resume():
                return self._started(["resume", *_named(asked.session), *_options({}, yes=asked.yes)], "", call)
            case tools.Issues() | tools.CreateIssue() | tools.UpdateIssue() | tools.Queue():
                with self._opened() as repository:
                    return as_json(_tracker(repository, asked))
            case _:
                with self._opened() as repository:
                    return self._with_session(repository, asked, call)

    @contextmanager
    def _opened(self) -> Iterator[Repository]:
        """The repository as it is now; a server lives long, and must not keep a journal open for each call."""
        repository = Repository(self._folder)
        try:
            yield repository
        finally:
            repository.close()

    def _with_session(self, repository: Repository, asked: Struct, call: Call) -> ToolAnswer:
        find = named_or_last_finished if isinstance(asked, tools.Accept) else named_or_last_active
        session = find(repository, getattr(asked, "session", "")) if hasattr(asked, "session") else SessionId("")
        match asked:
            case tools.Sessions():
                return as_json(_sessions(repository))
            case tools.Status(task=task):
                return as_json(_status(repository, session, task))
            case tools.Report():
                return Text(text=inspect.report(repository, session))
            case tools.Diff():
                return _diff(repository, session, asked)
            case tools.Answer(gate=gate, choice=choice):
                answers.answer(repository, session, gate, choice)
                return self._told(session)
            case tools.Accept(preview=preview, force=force):
                before = completion.preview_accept(repository, session)
                return as_json(before if preview else completion.accept(repository, session, force=force))
            case tools.Retry(preview=True):
                return as_json(resume.preview_retry(repository, session))
            case tools.Retry():
                resume.retry(repository, session)
                return self._started(["resume", session], "", call)
            case tools.Rollback(to=to, preview=True):
                return as_json(rollback.preview_rollback(repository, session, to))
            case tools.Rollback(to=to, reason=reason):
                return as_json(rollback.roll_back(repository, session, to, reason))
            case tools.Feedback(text=text, severity=severity, category=category):
                given = feedback.add(repository, session, text, severity=severity, category=category)
                return as_json(feedback.document(given))
            case _:
                raise AssertionError(f"{type(asked).__name__} is not a tool")

    def _start(self, command: str, line: str, text: str, options: Sequence[str], call: Call) -> ToolAnswer:
        if line.split() in (["status"], ["check"]):
            return self._done(tools.Status(), call)
        if line:
            return self._started([command, *options, "--line", "-"], line, call)
        if not text.strip():
            raise UserError("Neither a line nor a text says what to do", hint='{"line": "\\"Add login\\""}')
        return self._started([command, *options, "--", text], "", call)

    def _started(self, words: Sequence[str], line: str, call: Call) -> ToolAnswer:
        """Starts a session in the background: a task for a client that knows tasks, else where to look next."""
        command, *rest = words
        started = run_command(self._folder, [command, "--detach", "--json", *rest], line)
        session = str(started.document.get("session", ""))
        if call.caller.has_tasks:
            seen = self._seen(session)
            return Begun(session_tasks.task(seen.view, seen.report, seen.now))
        told = self._told(session)
        notes = [note for note in started.notes if note.startswith("warning: ")]
        return msgspec.structs.replace(told, text="\n".join([*notes, told.text]))

    def _seen(self, name: str) -> Seen:
        with self._opened() as repository:
            return _seen(_watch(repository, repository.find(name)), repository)

    def _told(self, session: SessionId | str) -> Text:
        seen = self._seen(session)
        return session_tasks.told(seen.view, seen.now, seen.report)

    def _answer_open(self, name: str, responses: Mapping[str, Response]) -> None:
        """Answers the questions that are open with those keys; others were answered elsewhere, or are no questions."""
        self._for_people("answer")
        with self._opened() as repository:
            session = named_or_last_active(repository, name)
            for gate in inspect.status(repository, session).gates:
                said = responses.get(session_tasks.key(gate))
                if said and said.choice is not None:
                    answers.answer(repository, session, gate.id, said.choice)

    async def _wait(self, asked: tools.Wait, call: Call) -> ToolAnswer:
        """Waits; a client that can show questions is asked itself, in the way of its revision."""
        end = time.monotonic() + asked.seconds
        if call.responses:
            await self._in_thread(partial(self._answer_open, asked.session, call.responses))
        declined = {key for key, said in call.responses.items() if said.choice is None}
        while True:
            seen = await self._in_thread(partial(self._until_changed, asked.session, end, call))
            gates = [gate for gate in seen.view.gates if session_tasks.key(gate) not in declined]
            can_ask = call.caller.can_ask and standing(seen.view, seen.now) is Standing.asking
            if not can_ask or not gates:
                return session_tasks.told(seen.view, seen.now, seen.report)
            if call.caller.is_stateless:
                open_ = session_tasks.questions(seen.view)
                return Asked({key: open_[key] for key in map(session_tasks.key, gates)})
            said = await self._client.ask(session_tasks.question(seen.view, gates[0]))
            name = session_tasks.key(gates[0])
            if said is None or said.choice is None:
                declined.add(name)
            else:
                await self._in_thread(partial(self._answer_open, seen.view.id, {name: said}))

    def _until_changed(self, name: str, end: float, call: Call) -> Seen:
        """Looks until the session asks, has ended, or the time is over; what happens meanwhile is said."""
        with self._opened() as repository:
            watched = SessionWatch(repository, named_or_last_active(repository, name))
            return self._watched(watched, repository, end, call)

    def _watched(self, watched: SessionWatch, repository: Repository, end: float, call: Call) -> Seen:
        looked_at, told_at, said, number = float("-inf"), float("-inf"), "", 0
        while True:
            changed, now = watched.look(), time.monotonic()
            if changed or now > looked_at + LOOK:
                looked_at, seen = now, _seen(watched, repository)
                if standing(seen.view, seen.now) is not Standing.working:
                    return seen
                news = session_tasks.progress(seen.view)
                if call.progress_token is not None and (news != said or now > told_at + STILL_THERE):
                    told_at, said, number = now, news, number + 1
                    params: Document = {"progressToken": call.progress_token, "progress": number, "message": news}
                    anyio.from_thread.run(self._client.notify, "notifications/progress", params)
            if now >= end:
                return _seen(watched, repository)
            anyio.from_thread.check_cancelled()
            time.sleep(INTERVAL)


def _watch(repository: Repository, session: SessionId) -> SessionWatch:
    watched = SessionWatch(repository, session)
    watched.look()
    return watched


def _seen(watched: SessionWatch, repository: Repository) -> Seen:
    view, now = watched.view(room=ROOM), time.time()
    over = standing(view, now) is Standing.over
    return Seen(view=view, report=inspect.report(repository, view.id) if over else "", now=now)


def _options(values: Mapping[str, object], *, yes: bool) -> list[str]:
    given = (word for name, value in values.items() if value for word in (name, str(value)))
    return [*given, *(["-y"] if yes else [])]


def _named(session: str) -> list[str]:
    return ["--", session] if session else []


def _sessions(repository: Repository) -> Document:
    lines = inspect.summaries(repository)
    found = [
        {
            "session": one.summary.id,
            "standing": one.standing,
            "completed": one.summary.completed,
            "tasks": one.summary.tasks,
            "requirement": one.summary.requirement[:200],
        }
        for one in lines
    ]
    return {"sessions": found, "elsewhere": [str(top) for top in elsewhere(repository)]}


def _status(repository: Repository, session: SessionId, task: str) -> Document:
    if task:
        return {"session": session, "task": task, "why": inspect.why(repository, session, task)}
    view = _watch(repository, session).view(room=ROOM)
    omitted = {status.value: count for status, count in view.omitted.items()}
    return session_document(view) | {"omitted": omitted}


def _diff(repository: Repository, session: SessionId, asked: tools.Diff) -> Text:
    change = diffs.change_of(repository, session, asked.task)
    found = diffs.diff(repository, session, change, asked.file)
    if not asked.file:
        return as_json({"session": session, "base": found.base, "tip": found.tip, "files": found.files})
    if not found.files:
        raise UserError(f'"{asked.file}" was not changed', hint="call diff without a file")
    cut = len(found.diff) > LONGEST_PATCH
    return Text(text=found.diff[:LONGEST_PATCH] + ("\n(cut)" if cut else ""))


def _tracker(
    repository: Repository, asked: tools.Issues | tools.CreateIssue | tools.UpdateIssue | tools.Queue
) -> object:
    match asked:
        case tools.Issues(issue=name) if name:
            return show.issue_status_document(show.issue_view(repository, name))
        case tools.Issues(status=statuses):
            return show.issue_list_document(show.issue_list(repository, statuses), is_brief=True)
        case tools.CreateIssue(title=title, description=description, priority=priority):
            fields = edit.IssueFields(title=title, description=description or None, priority=priority)
            edit.take_over_files(repository)
            return show.issue_document(edit.create(repository, {}, fields))
        case tools.UpdateIssue(title=title, description=description, priority=priority, status=status):
            given = edit.IssueFields(
                title=title or None,
                description=description or None,
                priority=priority or None,
                status=status or None,
            )
            edit.take_over_files(repository)
            return show.issue_document(edit.update(repository, asked.issue, given))
        case tools.Queue(add=names) if names:
            edit.take_over_files(repository)
            return queue.add(repository, names)
        case tools.Queue(queue=name):
            seen = show.queue(repository, name)
            return show.queue_document(seen) if seen else {"id": None, "solutions": []}
        case _:
            assert_never(asked)
