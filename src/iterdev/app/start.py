"""Creates a session from a request."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import msgspec

from iterdev.agents.registry import make_present
from iterdev.app import wisdom
from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.request import Request, checked, new_session
from iterdev.core.session.events import Entry, RowEdit
from iterdev.core.session.fold import replay
from iterdev.core.types import Role, SessionId, Team
from iterdev.engine.assembly import check_agents, sandboxed
from iterdev.engine.repository import Repository
from iterdev.execution import analyzer
from iterdev.host import clock
from iterdev.host.git import refs
from iterdev.store.session_folder import tasks_csv


def start(repository: Repository, request: Request, rows: tuple[RowEdit, ...] = ()) -> SessionId:
    """Creates a session, with the rows of a table that a person made if there are any; no file of the user changes."""
    base, branch = refs.head(repository.top), refs.current_branch(repository.top)
    request = msgspec.structs.replace(checked(request), requirement=repository.redact(request.requirement))
    repository.instructions()
    repository.prepare()
    taken = {*repository.sessions(), *(folder.name for folder in _session_folders(repository.top))}
    session = ids.session_id(Team.iterdev, request.engine, request.requirement, clock.now(), taken)
    events = new_session(request, repository.settings, session=session, base=base, branch=branch, rows=rows)
    if inherited := wisdom.inherited(repository, request.requirement):
        events.append(inherited)
    planned = replay([Entry(number, clock.now(), event) for number, event in enumerate(events, 1)])
    if planned:
        check_agents(
            repository, planned, partial(make_present, configured=repository.settings.agents, root=repository.top)
        )
    sandboxed(repository)
    (repository.top / ids.folder(request.engine, session)).mkdir(parents=True)
    repository.journal.append(session, events, at=clock.now(), after=0)
    return session


async def analyze(repository: Repository, request: Request) -> Request | str:
    """The request with what the architect's agent makes of it, or why the agent gave no usable answer."""
    agent = request.role_agents.get(Role.architect) or request.agent
    found = await analyzer.assessed(repository, request.requirement, agent)
    return found if isinstance(found, str) else msgspec.structs.replace(request, assessment=found)


def read_table(path: Path) -> tuple[RowEdit, ...]:
    """The rows of a table that a person made."""
    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f'"{path}" is not UTF-8 text: {error}', hint="save it as UTF-8") from error
    except OSError as error:
        raise UserError(f'Cannot read "{path}": {error.strerror}', hint="check the path after --tasks") from error
    rows = tasks_csv.parse(text, path.name)
    if not rows:
        raise UserError(f'"{path}" has no tasks', hint="add a row under the header")
    return tuple(rows)


def _session_folders(top: Path) -> Iterable[Path]:
    return (path for root in (".csv-wave", ".team") for path in (top / ".workflow" / root).glob("*"))
