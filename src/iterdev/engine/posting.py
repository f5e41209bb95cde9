"""The team's messages and discoveries for a person, who may come while an engine runs, and while none does."""

from contextlib import suppress

from iterdev.core import messages
from iterdev.core.bus import EVERYBODY
from iterdev.core.errors import UserError
from iterdev.core.events import MessageSent
from iterdev.core.results import Discovery
from iterdev.core.tools import Board, ReportResult, TeamMsg, ToolArguments
from iterdev.core.words import SessionId
from iterdev.engine.book import Book
from iterdev.engine.repository import Repository
from iterdev.engine.tools import Document, Refused, add, discoveries, look
from iterdev.host import clock, lease
from iterdev.store import records
from iterdev.store.projections import Projector

HELP = "iterdev team --help"


def use(repository: Repository, session: SessionId, asked: ToolArguments, sender: str) -> Document:
    """The same as the tools of agents, for somebody who says who they are."""
    book = Book(repository.journal, session, now=clock.now)
    folder = repository.folder(book.state)
    match asked:
        case TeamMsg(operation="log" | "broadcast"):
            return _post(repository, book, _message(repository, asked, _named(sender)))
        case TeamMsg():
            return _granted(book, asked)
        case Board(operation="read", kind=kind):
            return {"discoveries": discoveries(folder, kind)}
        case Board(kind=kind, data=data):
            try:
                return add(folder, Discovery(kind, data), worker=_named(sender), at=clock.now())
            except Refused as refusal:
                raise UserError(str(refusal), hint=HELP) from refusal
        case ReportResult():
            raise UserError("Only the agent of an attempt has a result to report", hint="run it in an attempt")


def _message(repository: Repository, asked: TeamMsg, sender: str) -> MessageSent:
    to = EVERYBODY if asked.operation == "broadcast" else asked.to
    summary = repository.redact(asked.summary)
    return messages.composed(sender, to=to, kind=asked.kind, summary=summary, data=asked.data)


def _named(sender: str) -> str:
    if not sender:
        raise UserError("Nobody is named as the sender", hint="--from coordinator")
    return sender


def _granted(book: Book, asked: TeamMsg) -> Document:
    try:
        return look(book.state, asked)
    except Refused as refusal:
        raise UserError(str(refusal), hint=HELP) from refusal


def _post(repository: Repository, book: Book, message: MessageSent) -> Document:
    state = book.append(message)
    number, sent = len(state.messages), state.messages[-1]
    folder = repository.folder(state)
    # The engine of a running session writes the files itself.
    with suppress(lease.Held), lease.lease(folder, wait=lambda: False):
        Projector(folder, repository.journal).write(state)
    return records.message_record(number, sent)
