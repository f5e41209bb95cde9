"""answer, accept and rollback: what only a person may decide."""

from pathlib import Path

import click

from iterdev.core import completion, names
from iterdev.core.errors import UserError
from iterdev.core.events import Accepted, GateAnswered
from iterdev.engine.book import Book
from iterdev.engine.repository import Repository
from iterdev.engine.rollback import roll_back
from iterdev.host import clock, git, landing
from iterdev.surfaces.cli import closing


def answer(*, session: str, gate: str, choice: str) -> int:
    repository = Repository(Path.cwd())
    book = Book(repository.journal, repository.find(session), now=clock.now)
    if gate == completion.GATE and book.state.is_finished:
        return closing.answer(repository, book.session, choice)
    question = book.state.gates.get(gate)
    if question is None:
        asked = ", ".join(book.state.gates) or "none"
        raise UserError(f'"{gate}" is not an open question of {book.session}', hint=f"open questions: {asked}")
    if choice not in question.choices:
        raise UserError(f'"{choice}" is not an answer to "{gate}"', hint=f"one of: {', '.join(question.choices)}")
    book.append(GateAnswered(gate, choice))
    click.echo(f"{gate}: {choice}")
    if not repository.engine_alive(book.state):
        click.echo(f"Go on with: iterdev resume {book.session}")
    return 0


def accept(*, session: str | None) -> int:
    repository = Repository(Path.cwd())
    found = repository.find(session) if session else repository.newest()
    book = Book(repository.journal, found, now=clock.now)
    state = book.state
    if repository.engine_alive(state):
        raise UserError(f'"{found}" is still running', hint=f"iterdev status {found}")
    if not state.is_finished:
        raise UserError(f'"{found}" is not finished', hint=f"iterdev resume {found}")
    if state.tip == state.session.base:
        raise UserError(f'"{found}" has changed nothing', hint=f"iterdev report {found}")
    into = state.session.branch or git.current_branch(repository.top)
    commit = landing.accept(repository.top, names.branch(found), into, found)
    book.append(Accepted(into, commit))
    click.echo(f"{into} is now at {commit[:12]} with the work of {found}")
    return 0


def rollback(*, session: str, task: str, reason: str) -> int:
    repository = Repository(Path.cwd())
    book = Book(repository.journal, repository.find(session), now=clock.now)
    planned = roll_back(repository, book, task, reason)
    undone = ", ".join([*(row.id for row in planned.rows), *planned.removed])
    click.echo(f"{names.branch(book.session)} is at {planned.tip[:12]} again, as before {task}; undone: {undone}")
    if book.state.accepted:
        click.echo(f"{book.state.session.branch} keeps what was accepted as {book.state.accepted[:12]}")
    click.echo(f"Go on with: iterdev resume {book.session}")
    return 0
