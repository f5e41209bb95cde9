"""Sessions as text and as JSON documents."""

from collections.abc import Iterator, Mapping

import msgspec

from iterdev.core.limits.spending import Spending, in_one_line
from iterdev.core.results import Usage
from iterdev.core.session import conflict_tasks
from iterdev.core.session.state import State
from iterdev.core.types import Phase, Status
from iterdev.core.views import session as session_view
from iterdev.engine.loop import Ending
from iterdev.teams.development import sprints
from iterdev.teams.development.gates import PIPELINE_GATE


def as_document(state: State, *, engine_alive: bool) -> dict[str, object]:
    picture = session_view.picture(state, engine_alive=engine_alive)
    document: dict[str, object] = msgspec.to_builtins(picture)
    document["tasks"] = document.pop("lines")
    document["gates"] = [msgspec.to_builtins(gate) for gate in state.gates.values()]
    document["running"] = engine_alive
    return document


def status_text(state: State, *, engine_alive: bool) -> str:
    """The status picture: a mark per task, then rounds, sprint and session."""
    picture = session_view.picture(state, engine_alive=engine_alive)
    width = max((len(line.id) for line in picture.lines), default=0)
    lines = [f"Pipeline Status ({picture.pipeline or 'not chosen yet'}):"]
    lines += [f"{line.mark:<6} {line.id:<{width}} ({line.role}) -> {line.note}" for line in picture.lines]
    lines += [
        "",
        f"GC Rounds: {picture.round}/{picture.rounds}",
        f"Sprint: {_sprint(picture)}",
        f"Session: {picture.session}",
        f"State: {_standing(state, engine_alive=engine_alive)}",
        f"Tasks: {', '.join(f'{count} {status}' for status, count in picture.counts.items() if count)}",
    ]
    if picture.usage != Usage():
        usage = picture.usage
        lines.append(f"Spent: {usage.input_tokens} tokens in, {usage.output_tokens} out, ${usage.cost_usd:.2f}")
        lines += [f"  by {name}: {in_one_line(usages)}" for name, usages in _groups(picture.spending)]
    lines += [f"Paused: {session_view.paused_provider(pause)}" for pause in picture.pauses]
    open_items = (("Feedback", picture.feedback), ("Technical debt", picture.debt))
    lines += [f"{name}: {count}" for name, count in open_items if count]
    lines += [f"Warning: {text}" for text in picture.warnings]
    if picture.stall:
        lines.append(f"Stalled: {picture.stall}")
    lines += question_lines(state)
    return "\n".join(lines)


def _sprint(picture: session_view.Picture) -> str:
    """Which one it is, and what each is for if there are several."""
    if picture.sprints == 1:
        return picture.sprint
    goals = "; ".join(f"{number}. {goal}" for number, goal in enumerate(picture.goals, 1))
    return f"{picture.sprint} of {picture.sprints} ({goals})"


def _groups(spending: Spending) -> tuple[tuple[str, Mapping[str, Usage]], ...]:
    return ("role", spending.roles), ("task", spending.tasks), ("agent", spending.agents)


def _standing(state: State, *, engine_alive: bool) -> str:
    if state.is_over:
        return ", ".join((f"{state.phase}{f' ({state.why})' if state.why else ''}", *_reservations(state)))
    if engine_alive:
        return "running"
    if state.gates:
        return "waiting for an answer, see below"
    why = f": {state.why}" if state.why else ""
    return f"not running{why}; go on with `iterdev resume {state.session.id}`"


def _reservations(state: State) -> Iterator[str]:
    """What a word such as "completed" does not say."""
    if state.forced:
        yield f"with convergence forced in {', '.join(f'sprint-{number}' for number in state.forced)}"
    if state.sprint < sprints.total(state):
        yield f"stopped after sprint {state.sprint} of {sprints.total(state)}"
    if state.accepted:
        yield f"accepted as {state.accepted[:12]}"


def question_lines(state: State) -> list[str]:
    lines: list[str] = []
    for gate in state.gates.values():
        lines += ["", f"Question ({gate.id}): {gate.question}"]
        choices = gate.choices if gate.id != PIPELINE_GATE else gate.choices[:1]
        lines += [f"  iterdev answer {state.session.id} {gate.id} {choice}" for choice in choices]
        if others := gate.choices[len(choices) :]:
            lines.append(f"  or, in place of {choices[0]}: {', '.join(others)}")
    return lines


def summary(state: State, ending: Ending) -> str:
    """The last words of a run."""
    session = state.session.id
    counts = ", ".join(
        f"{state.count(status)} {status}" for status in (Status.completed, Status.failed, Status.skipped)
    )
    lines = [f"{session}: {counts}"]
    lines += [f"  failed  {task.id}: {p.error}" for task, p in state.rows() if p.status is Status.failed]
    lines += [f"  skipped {task.id}: {p.error}" for task, p in state.rows() if p.status is Status.skipped]
    lines += [f"  not landed {task}: {conflict_tasks.collision(state, task)}" for task in conflict_tasks.lost(state)]
    lines += [f"  warning: {text}" for text in state.warnings]
    match ending:
        case Ending.over:
            lines += _hand_over(state)
        case Ending.waiting:
            lines += question_lines(state)
            lines += ["", f"Then: iterdev resume {session}"]
        case Ending.interrupted:
            lines.append(f"Interrupted; everything is saved. Go on with: iterdev resume {session}")
        case Ending.stepped:
            lines.append(f"One step done. Next: iterdev resume {session} --step")
    return "\n".join(lines)


def _hand_over(state: State) -> list[str]:
    session = state.session.id
    if state.why and not state.completion.kept:
        return [f"Ended: {state.why}"]
    lines = [f"Report: {state.session.folder}/context.md"]
    if state.tip != state.session.base:
        lines.append(f"Branch: iterdev/{session} ({state.tip[:12]})")
    if state.phase is Phase.archived:
        lines.append(f"Archived; open it again with: iterdev reopen {session}")
    if state.accepted:
        return [*lines, f"Accepted as {state.accepted[:12]}"]
    failed = state.count(Status.failed) or state.count(Status.skipped)
    if failed:
        lines.append(f"Try again with: iterdev retry {session}")
    if state.tip != state.session.base:
        what = "what landed all the same" if failed or state.forced else "it over"
        lines.append(f"Take {what} with: iterdev accept {session}")
    return lines
