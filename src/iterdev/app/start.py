"""Creates a session from a request."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import msgspec

from iterdev.agents.registry import make_present
from iterdev.app import wisdom
from iterdev.core import ids
from iterdev.core.request import Request, new_session
from iterdev.core.session.events import Entry, RowEdit
from iterdev.core.session.fold import replay
from iterdev.core.types import SessionId, Team
from iterdev.engine.assembly import check_agents, sandboxed
from iterdev.engine.repository import Repository
from iterdev.host import clock
from iterdev.host.git import refs


def begin(repository: Repository, request: Request, rows: tuple[RowEdit, ...] = ()) -> SessionId:
    """Creates a session; nothing of the user's is touched."""
    base, branch = refs.head(repository.top), refs.current_branch(repository.top)
    request = msgspec.structs.replace(request, requirement=repository.redact(request.requirement))
    repository.instructions()
    repository.prepare()
    taken = {*repository.sessions(), *(folder.name for folder in _session_folders(repository.top))}
    session = ids.session_id(Team.iterdev, request.engine, request.requirement, clock.now(), taken)
    events = new_session(request, repository.settings, session=session, base=base, branch=branch, rows=rows)
    if inherited := wisdom.handed_down(repository, request.requirement):
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


def _session_folders(top: Path) -> Iterable[Path]:
    return (path for root in (".csv-wave", ".team") for path in (top / ".workflow" / root).glob("*"))
