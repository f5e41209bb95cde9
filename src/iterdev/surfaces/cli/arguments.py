"""Where a command of a protocol finds its session, and what it takes for a task, a text and a document."""

import json
import os
import sys
from pathlib import Path

from iterdev.core.errors import UserError
from iterdev.core.session import tasks
from iterdev.core.types import TaskId
from iterdev.engine.repository import Repository

SESSION_DIR = "ITERDEV_SESSION_DIR"


def repository() -> Repository:
    """The repository of the current directory; an agent sits in a worktree, and means that of its session."""
    session = Path(os.environ.get(SESSION_DIR) or ".")
    return Repository(session if session.is_dir() else Path.cwd())


def task_name(text: str) -> TaskId:
    """A task need not be in the table: a person may act on something that is not."""
    if not tasks.NAME.fullmatch(text):
        raise UserError(f'"{text}" cannot name a task', hint="--task DEV-001")
    return TaskId(text)


def sentence(found: Repository, words: tuple[str, ...], hint: str) -> str:
    """The words of a command line as one text, without secrets."""
    text = found.redact(" ".join(words)).strip()
    if not text:
        raise UserError("The text is empty", hint=hint)
    return text


def document(text: str, example: str) -> object:
    """A JSON document; `-` reads it from standard input."""
    body = sys.stdin.read() if text == "-" else text
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise UserError(f'"{body[:80]}" is not JSON: {error}', hint=f"--data '{example}'") from error
