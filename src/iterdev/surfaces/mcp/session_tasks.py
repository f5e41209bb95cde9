"""A session as a task of the protocol's tasks extension, and what a tool says of it.

Nothing of it is kept here: the journal has the session, so that a new server continues where the last one ended.
"""

from datetime import UTC, datetime
from enum import StrEnum

from iterdev.core.types import Ending, Status
from iterdev.core.views.gates import GateView
from iterdev.core.views.session import STARTING, SessionView
from iterdev.mcp.messages import Document
from iterdev.mcp.server import as_result
from iterdev.mcp.tools import Question, Text, as_requests

POLL_MS = 2_000
DETAILS = 30
"""Lines about a question that are shown with it."""
LONGEST_REPORT = 8_000
"""Characters of a report: it stays in the context of the client's model."""


class Standing(StrEnum):
    """Where a session stands, in the words of the protocol."""

    working = "working"
    asking = "input_required"
    over = "completed"
    interrupted = "cancelled"


def standing(view: SessionView, now: float) -> Standing:
    if view.outcome.is_finished:
        return Standing.working if view.running else Standing.over
    if view.why == Ending.interrupted and not view.running:
        return Standing.interrupted
    if view.gates:
        return Standing.asking
    lives = view.running or now < view.updated_at + STARTING
    return Standing.working if lives else Standing.over


def progress(view: SessionView) -> str:
    """Where the work is, in a few words."""
    done, tasks = view.counts[Status.completed], sum(view.counts.values())
    running = [f"{task.id} {task.role}" for task in view.tasks if task.status is Status.in_progress]
    waves = [wave.name for wave in view.waves if any(wave.counts[one] for one in (Status.in_progress, Status.pending))]
    parts = (*waves[:1], f"{done}/{tasks} tasks done" if tasks else "starting", *running[:3])
    return ", ".join(parts)


def key(gate: GateView) -> str:
    """Identifies one opening of a question: the same question may be opened again."""
    return f"{gate.id}@{int(gate.opened_at * 1000)}"


def question(view: SessionView, gate: GateView) -> Question:
    lines = (f"{view.id}: {gate.question}", *gate.details[:DETAILS])
    titles = {
        choice: f"{choice}: {gate.descriptions[choice]}" for choice in gate.choices if choice in gate.descriptions
    }
    return Question(text="\n".join(lines), choices=gate.choices, titles=titles)


def questions(view: SessionView) -> dict[str, Question]:
    return {key(gate): question(view, gate) for gate in view.gates}


def task(view: SessionView, report: str, now: float) -> Document:
    """The session, as `tasks/get` shows it."""
    stands = standing(view, now)
    document: Document = {
        "taskId": view.id,
        "status": stands.value,
        "statusMessage": _message(view, stands),
        "createdAt": _moment(view.created_at),
        "lastUpdatedAt": _moment(view.updated_at),
        "ttlMs": None,
        "pollIntervalMs": POLL_MS,
    }
    if stands is Standing.asking:
        document["inputRequests"] = as_requests(questions(view))
    if stands is Standing.over:
        document["result"] = as_result(ended(view, report))
    return document


def _message(view: SessionView, stands: Standing) -> str:
    match stands:
        case Standing.asking:
            return f"asks: {view.gates[0].question}"
        case Standing.interrupted:
            return f"interrupted; everything is kept. Continue with: iterdev resume {view.id}"
        case Standing.over:
            return _outcome(view)
        case Standing.working:
            return progress(view)


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _outcome(view: SessionView) -> str:
    if view.outcome.succeeded:
        return "done; nothing is in the user's branch until the user accepts it"
    if view.outcome.reasons:
        return f"not successful: {'; '.join(view.outcome.reasons)}"
    return f"no engine is running: {view.why or 'the last one ended without saying why'}"


def ended(view: SessionView, report: str) -> Text:
    """What the client's model is told when a session has ended."""
    cut = report if len(report) <= LONGEST_REPORT else f"{report[:LONGEST_REPORT]}\n(cut: see the tool report)"
    if view.outcome.is_finished:
        then = f"The user can look at it with `iterdev diff {view.id}` and take it with `iterdev accept {view.id}`."
        lines = (f"{view.id}: {_outcome(view)}", *view.team.verdicts, then, "", cut)
        return Text(text="\n".join(lines), is_error=not view.outcome.succeeded)
    text = f"{view.id}: {_outcome(view)}. Everything is kept; continue with the tool resume, if the user wants it."
    return Text(text=text, is_error=True)


def told(view: SessionView, now: float, report: str) -> Text:
    """What the client's model is told of a session, and what it should do next."""
    match standing(view, now):
        case Standing.over:
            return ended(view, report)
        case Standing.interrupted:
            return Text(text=f"{view.id}: {_message(view, Standing.interrupted)}", is_error=True)
        case Standing.asking:
            return Text(text="\n\n".join(_asked(view, gate) for gate in view.gates))
        case Standing.working:
            return Text(text=f'{view.id} is at work: {progress(view)}. Call wait with session "{view.id}".')


def _asked(view: SessionView, gate: GateView) -> str:
    lines = [question(view, gate).text, "Ask the user, with these choices, and do not choose yourself:"]
    lines += [f"- {choice}: {gate.descriptions.get(choice, '')}".rstrip(": ") for choice in gate.choices]
    given = f'session "{view.id}", gate "{gate.id}" and the choice'
    return "\n".join([*lines, f"Then call answer with {given}, and then wait."])
