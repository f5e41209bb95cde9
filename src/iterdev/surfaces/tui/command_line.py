"""The command line of the dashboard: the words of the commands of iterdev, without `iterdev` and the session."""

import shlex
from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from iterdev.app.live.acts import (
    Accept,
    Act,
    Answer,
    Archive,
    Broadcast,
    Clean,
    Comment,
    Export,
    OpenPullRequest,
    Reopen,
    Resume,
    Retry,
    RollBack,
)
from iterdev.core.errors import UserError, did_you_mean
from iterdev.core.types import SessionId
from iterdev.core.views.keys import Action


class Go(Struct, frozen=True):
    """Something to show."""

    action: Action
    about: str = ""
    """A task, the number of a round, or the words of a filter."""


Typed: TypeAlias = Act | Go
COMMANDS = {
    "accept": "Merge the work into your branch: accept [--force]",
    "answer": "Answer a question: answer GATE CHOICE",
    "archive": "Archive the session",
    "broadcast": "Send a message to all roles: broadcast TEXT",
    "clean": "Remove the branches and worktrees of the session that are not needed",
    "comment": "Tell the team what you think: comment TEXT",
    "diff": "The changes: diff [TASK or ROUND]",
    "export": "Copy what the session made to a folder, and archive it: export PATH",
    "filter": "Filter the tasks: filter WORDS",
    "needs": "What needs you",
    "output": "What an agent says: output TASK",
    "pr": "Push the branch and open its pull request: pr [--draft]",
    "quit": "Quit; the session continues",
    "reopen": "Reopen the archived session",
    "resume": "Continue in the background",
    "retry": "Run the failed tasks again",
    "rollback": "Go back to before a task: rollback TASK [REASON]",
    "sessions": "All sessions",
    "status": "The tasks of the session",
    "timeline": "The time line",
}
"""What can be typed, with its help."""
VIEWS = {
    "diff": Action.changes,
    "filter": Action.filter,
    "needs": Action.needs,
    "output": Action.output,
    "quit": Action.quit,
    "sessions": Action.sessions,
    "status": Action.session,
    "timeline": Action.timeline,
}


SAYING = frozenset({"broadcast", "comment"})
"""The commands that are followed by free text."""
ALONE: Mapping[str, type[Archive | Clean | Reopen | Resume | Retry]] = {
    "archive": Archive,
    "clean": Clean,
    "reopen": Reopen,
    "resume": Resume,
    "retry": Retry,
}
"""The acts that need no further word."""


def parse(text: str, session: SessionId | None) -> Typed:
    """What is meant; raises `UserError`. A whole line may be pasted, with `iterdev` and the session."""
    name, _, said = text.strip().removeprefix("iterdev ").lstrip().partition(" ")
    if name in SAYING and said.strip():
        rest = [_without_quotes(said.strip())]
    else:
        try:
            rest = [word for word in shlex.split(said) if word != session]
        except ValueError as error:
            raise UserError(f'"{text}" cannot be read: {error}', hint="close the quotation mark") from error
    if not name:
        raise UserError("The command is empty", hint="accept")
    if name in VIEWS:
        return Go(VIEWS[name], " ".join(rest))
    if name not in COMMANDS:
        raise UserError(f'There is no command "{name}" here{did_you_mean(name, COMMANDS)}', hint=", ".join(COMMANDS))
    if session is None:
        raise UserError("There is no session yet", hint='iterdev run "Add a greeting"')
    return _act(name, rest, session)


def _without_quotes(said: str) -> str:
    try:
        words = shlex.split(said)
    except ValueError:
        return said
    return words[0] if len(words) == 1 else said


def _act(name: str, rest: list[str], session: SessionId) -> Act:
    match name, rest:
        case "accept", []:
            return Accept(session=session)
        case "accept", ["--force"]:
            return Accept(session=session, force=True)
        case "answer", [gate, choice]:
            return Answer(session=session, gate=gate, choice=choice)
        case (("archive" | "clean" | "reopen"), []):
            return ALONE[name](session=session)
        case (("resume" | "retry"), [] | ["--detach"]):
            return ALONE[name](session=session)
        case "broadcast", [said]:
            return Broadcast(session=session, text=said)
        case "comment", [said]:
            return Comment(session=session, text=said)
        case "export", [path]:
            return Export(session=session, path=path)
        case "pr", [] | ["--draft"]:
            return OpenPullRequest(session=session, is_draft=bool(rest))
        case "rollback", [target]:
            return RollBack(session=session, target=target)
        case "rollback", [target, *reason]:
            said = " ".join(word for word in reason if word != "--reason")
            return RollBack(session=session, target=target, reason=said)
        case _:
            raise UserError(f'"{name}" does not take "{" ".join(rest)}"', hint=COMMANDS[name])
