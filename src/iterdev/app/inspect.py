"""Reads sessions: what is done, running and waiting, and why. Nothing is changed.

What only one of the questions needs is imported where it is asked, because `status` has to be quick.
"""
# ruff: noqa: PLC0415 - see above

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from iterdev.app.edits import require_task
from iterdev.core.errors import HostError, UserError
from iterdev.core.prompts import SESSION_DIR
from iterdev.core.session.events import AttemptStarted
from iterdev.core.session.lifecycle import TIMELINE
from iterdev.core.session.state import State
from iterdev.core.types import SessionId
from iterdev.core.views.session import SessionLine, SessionView, session_view
from iterdev.engine.repository import Repository
from iterdev.host import clock

if TYPE_CHECKING:
    from iterdev.core.rules.replay_check import Replay


def view(repository: Repository, state: State) -> SessionView:
    process = repository.engine_process(state.session)
    alive = process is not None
    return session_view(state, repository.team(state), engine_alive=alive, process=process, zone=clock.LOCAL)


def status(repository: Repository, session: SessionId) -> SessionView:
    return view(repository, repository.state(session))


def summaries(repository: Repository) -> Iterator[SessionLine]:
    """Every session in one line each, the newest last; no session is folded."""
    return (SessionLine(summary, repository.engine_alive(summary)) for summary in repository.summaries())


def why(repository: Repository, session: SessionId, task: str) -> list[str]:
    """What the task waits for, down to the first cause."""
    from iterdev.core.views import why as reasons

    state = repository.state(session)
    alive, team = repository.engine_alive(state.session), repository.team(state)
    return reasons.why(state, team, require_task(state, task), engine_alive=alive, zone=clock.LOCAL)


def prompt(repository: Repository, session: SessionId, task: str, number: int) -> str:
    """What the agent of an attempt was first asked, reconstructed from the journal and the commits of that time.

    What was on the discovery board, in checkpoints and in `iterdev.toml` is as it is now; the host that ran the attempt
    put in the path of the result, and how the tests are run.
    """
    import anyio

    from iterdev.core.session.fold import replay as replayed
    from iterdev.engine.jobs import Jobs

    entries = repository.journal.read(session)
    for place, entry in enumerate(entries, 1):
        if isinstance(started := entry.event, AttemptStarted) and (started.task, started.number) == (task, number):
            team = repository.team(repository.state(session))
            state = replayed(entries[:place], team)
            folder = repository.folder(state)
            try:
                job = anyio.run(Jobs(repository, folder, team).make_again, state, started)
            except HostError as error:
                why = f"The prompt of {task} cannot be reconstructed: {error.message}"
                raise UserError(why, hint=f"iterdev report {session}") from error
            return repository.redact(job.prompt.replace(SESSION_DIR, str(folder)))
    raise UserError(f'There is no attempt {number} at "{task}"', hint=f"iterdev status {session}")


def report(repository: Repository, session: SessionId, *, pictures: bool = True) -> str:
    """The report as Markdown; its pictures are files of the session folder, and nowhere else."""
    from iterdev.core.views import report as reports

    state = repository.state(session)
    drawn = pictures and (repository.folder(state) / TIMELINE).exists()
    return reports.report(state, repository.team(state), clock.LOCAL, timeline=TIMELINE if drawn else "")


def replay(
    repository: Repository, session: SessionId, seen: Callable[[int, int], None] = lambda _done, _total: None
) -> "Replay":
    """`seen` is told how many entries have been compared, of how many."""
    from iterdev.core.rules.replay_check import compare

    return compare(repository.journal.read(session), repository.team(repository.state(session)), seen)
