"""The journal as lines of text: one for each notable event."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import tzinfo
from itertools import groupby
from operator import attrgetter
from typing import Protocol

from msgspec import Struct

from iterdev.core.formatting import counted
from iterdev.core.ids import ZONE, moment
from iterdev.core.limits.providers import AgentReplaced, ProviderPaused
from iterdev.core.results import shortened
from iterdev.core.session import events
from iterdev.core.session.delivery import Accepted, AcceptUndone, PullRequestOpened
from iterdev.core.session.events import Entry, Event, TeamEvent
from iterdev.core.session.fold import TeamFold, evolve, replay
from iterdev.core.session.landing_events import LandingTakenOut, LandingTestEnded, LandingTestStarted
from iterdev.core.session.state import State
from iterdev.core.types import Status, TaskId
from iterdev.core.views.progress import task_change
from iterdev.core.views.tasks import task_view
from iterdev.core.views.team import TeamViews

WIDTH = 300
"""Characters of a line, after its time; a question is not cut."""
NAMED = 8
"""Tasks that a line names."""
SAID: Mapping[type, str] = {
    events.RetryRequested: "to be retried",
    events.Archived: "archived",
    events.Kept: "kept active",
    events.Reopened: "open again",
}
"""Events that say all by themselves."""


class EventLine(Struct, frozen=True, kw_only=True):
    seq: int
    at: float
    when: str
    """The same for people, in their zone."""
    event: str
    """The kind of the event, such as `AttemptStarted`."""
    task: TaskId | None
    text: str


class FoldedTeam(TeamFold, TeamViews, Protocol):
    """What is needed of a team to fold a journal and to describe it."""


def event_lines(
    before: State | None, entries: Sequence[Entry], team: FoldedTeam, zone: tzinfo = ZONE
) -> tuple[State, list[EventLine]]:
    """The state after the entries, and their lines; without an earlier state they are a journal from its beginning.

    What was recorded at once is described together: a verdict follows the attempt that it is about.
    """
    lines: list[EventLine] = []
    state = before
    for _, group in groupby(entries, key=lambda entry: entry.at):
        together = list(group)
        after = evolve(state, together, team) if state else replay(together, team)
        lines += sorted(_lines(state, after, together, team, zone), key=attrgetter("seq"))
        state = after
    if state is None:
        raise ValueError("a journal has at least one entry")
    return state, lines


def _lines(
    before: State | None, after: State, entries: Sequence[Entry], team: TeamViews, zone: tzinfo
) -> Iterator[EventLine]:
    for entry in entries:
        if text := _text(entry.event, after, team, zone):
            yield _line(entry, text, zone)
    if last := next((entry for entry in reversed(entries) if isinstance(entry.event, TeamEvent)), None):
        known = team.view(before).steps if before else ()
        yield from (_line(last, step, zone) for step in team.view(after).steps if step not in known)


def _line(entry: Entry, text: str, zone: tzinfo) -> EventLine:
    event, whole = entry.event, " ".join(text.split())
    return EventLine(
        seq=entry.seq,
        at=entry.at,
        when=moment(entry.at, zone),
        event=type(event).__name__,
        task=getattr(event, "task", None),
        text=whole if isinstance(event, events.GateOpened) else shortened(whole, WIDTH),
    )


def _text(event: Event, state: State, team: TeamViews, zone: tzinfo) -> str:
    work = _of_attempt(event, state, team) or _of_task(event)
    return work or _of_session(event, state) or _of_user(event) or _of_limit(event, zone)


def _of_attempt(event: Event, state: State, team: TeamViews) -> str:
    match event:
        case events.AttemptStarted(task, number, agent):
            row = state.tasks.plan.get(task)
            shown = agent if row and team.task_notes(state, task).asks_agent else ""
            who = (row.role if row else "", shown, f"attempt {number}")
            return f"{task} started ({', '.join(filter(None, who))})"
        case events.AttemptPlaced(task, host=host):
            return f"{task} runs on {host}"
        case events.AttemptEnded(status=Status.landing):
            return ""
        case events.AttemptEnded(task=task, number=number, outcome=events.Failed(error=error), status=Status.pending):
            return f"{task} attempt {number} failed, and is tried again: {error}"
        case events.AttemptEnded(task=task, outcome=events.Limited(error=error), status=Status.pending):
            return f"{task} waits for its provider: {error}"
        case events.AttemptEnded(task=task, outcome=events.Interrupted(problem=problem) as cut, status=Status.pending):
            why = f" by its host: {problem}" if problem else ", because its host died" if cut.host_died else ""
            return f"{task} interrupted{why}" if problem else f"{task} interrupted{why}; its work is kept"
        case events.AttemptEnded(task=task, outcome=events.Unmet(), status=Status.pending):
            return f"{task} needs packages that are not there as declared"
        case events.Landed(status=None) | events.LandingRefused(status=None):
            return f"{event.task} is in conflict with what landed before: {', '.join(_conflicting(event))}"
        case events.ConflictResolved(task=task, fix=str(fix), status=status) if status is not Status.failed:
            return f"the conflict of {task} is resolved by {fix}"
        case events.AttemptEnded(task=task) | events.Landed(task=task) | events.LandingRefused(task=task):
            return _change(state, team, task)
        case events.ConflictResolved(task=task, error=error):
            return f"{task} failed: {error}"
        case _:
            return _of_queue(event)


def _of_queue(event: Event) -> str:
    match event:
        case LandingTestStarted(tasks=tasks):
            return f"the tests are run with the work of {_names(tasks)} before it lands"
        case LandingTestEnded(tasks=tasks, passed=bool(passed)):
            return f"the tests {'pass' if passed else 'fail'} with the work of {_names(tasks)}"
        case LandingTakenOut(task=task, error=error, status=Status.failed):
            return f"{task} failed: {error}"
        case _:
            return ""


def _conflicting(event: events.Landed | events.LandingRefused) -> tuple[str, ...]:
    return (
        event.conflict.files if event.conflict else event.changed if isinstance(event, events.Landed) else event.files
    )


def _change(state: State, team: TeamViews, task: TaskId) -> str:
    return f"{task} {task_change(task_view(state, team, task))}" if task in state.tasks.plan else ""


def _of_task(event: Event) -> str:
    match event:
        case events.TaskCompleted(task, findings) | events.TaskReported(task=task, findings=findings):
            return f"{task} completed: {findings}"
        case events.TaskFailed(task, error):
            return f"{task} failed: {error}"
        case events.TaskSkipped(task, error):
            return f"{task} skipped: {error}"
        case events.TasksAdded(tasks):
            return f"{counted(len(tasks), 'task')} added: {_names(task.id for task in tasks)}"
        case events.TasksReset(tasks):
            return f"to be done again: {_names(tasks)}"
        case events.TasksRemoved(tasks):
            return f"removed from tasks.csv: {_names(tasks)}"
        case events.TableEdited(rows):
            return f"tasks.csv was edited: {_names(row.task.id for row in rows)}"
        case _:
            return ""


def _names(tasks: Iterable[str]) -> str:
    names = list(tasks)
    rest = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + rest


def _of_session(event: Event, state: State) -> str:
    match event:
        case events.SessionStarted(session):
            return f"session {session.id}: {session.requirement}"
        case events.GateOpened(gate):
            choices = "|".join(gate.choices)
            return f"question: {gate.question} Answer with: iterdev answer {state.session.id} {gate.id} {choices}"
        case events.GateAnswered(gate, choice):
            return f"{gate} was answered: {choice}"
        case events.WaveStarted(wave):
            return f"wave {wave}/{max((task.wave for task in state.tasks.plan.values()), default=wave)}"
        case events.EngineStarted(pid, detached=detached):
            return f"the engine started in process {pid}{', in the background' if detached else ''}"
        case events.Paused(why):
            return f"paused: {why}"
        case events.Finished(why):
            counts = ((state.tasks.count(status), status) for status in Status)
            return f"finished: {why or ', '.join(f'{count} {status}' for count, status in counts if count)}"
        case events.Warned(text):
            return f"warning: {text}"
        case events.EnvironmentMade(text):
            return f"environment: {text}"
        case _:
            return ""


def _of_user(event: Event) -> str:
    """What a person did with the session."""
    match event:
        case Accepted(branch, commit):
            return f"accepted: {branch} is at {commit[:12]}"
        case AcceptUndone(branch, commit):
            return f"not accepted any more: {branch} is at {commit[:12]} again"
        case PullRequestOpened(url=url, head=head):
            return f"pull request: {url} has {head[:12]}"
        case events.UpdateRequested(branch=branch):
            return f"to be brought up to date with {branch}"
        case events.RollbackStarted(target=target):
            return f"rolling back to before {target}; undone: {_names(event.undone)}"
        case events.RollbackFailed(_, error):
            return f"the rollback failed: {error}"
        case _:
            return SAID.get(type(event), "")


def _of_limit(event: Event, zone: tzinfo) -> str:
    match event:
        case ProviderPaused(provider, until, why):
            return f"the provider {provider} is paused until {moment(until, zone)}: {why}"
        case AgentReplaced(task=task, agent=agent, successor=successor, error=error):
            return f"{task} continues with {successor} instead of {agent}: {error}"
        case _:
            return ""
