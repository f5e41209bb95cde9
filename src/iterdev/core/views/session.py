"""One session as every surface shows it. Surfaces render this value and do not look at the state."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import TypeAlias

import msgspec
from msgspec import Struct

from iterdev.core import ids
from iterdev.core.collaboration import feedback, tech_debt
from iterdev.core.formatting import merged
from iterdev.core.limits.budget import in_one_line
from iterdev.core.results import Usage
from iterdev.core.session.state import State
from iterdev.core.session.summary import SessionSummary
from iterdev.core.session.task_table import TaskTable
from iterdev.core.types import Engine, Phase, SessionId, Severity, Status
from iterdev.core.views.attention import Need, needs
from iterdev.core.views.gates import GateView, gate_document, gate_view
from iterdev.core.views.outcome import OutcomeView, outcome_view
from iterdev.core.views.tasks import TaskView, excerpt, task_view
from iterdev.core.views.team import TeamView, TeamViews
from iterdev.core.views.why import PauseView, pauses, stall

Document: TypeAlias = dict[str, object]
STARTING = 5.0
"""Seconds after the last event during which an engine may be about to start."""


class BranchView(Struct, frozen=True, kw_only=True):
    name: str
    into: str
    """The user's branch that the session came from; empty if it had none."""
    base: str
    """The commit that the session's change is compared with."""
    tip: str
    has_changes: bool
    accepted: str
    """The commit of the user's branch that has all of the session's work."""


class SpendingView(Struct, frozen=True, kw_only=True):
    """What was spent by role, by task and by agent. What spent nothing is left out."""

    roles: Mapping[str, Usage]
    tasks: Mapping[str, Usage]
    agents: Mapping[str, Usage]

    @property
    def by_role_and_agent(self) -> str:
        return " · ".join(in_one_line(usages) for usages in (self.roles, self.agents) if usages)


class WaveView(Struct, frozen=True, kw_only=True):
    number: int
    of: int
    """The number of the last wave that is planned so far."""
    counts: Mapping[Status, int]

    @property
    def name(self) -> str:
        return f"wave {self.number}/{self.of}"

    @property
    def summary(self) -> str:
        return f"{self.name}: {', '.join(f'{count} {status}' for status, count in self.counts.items() if count)}"


def wave_views(tasks: TaskTable) -> tuple[WaveView, ...]:
    """What became of the tasks of each wave."""
    counts: dict[int, Counter[Status]] = {}
    for task, progress in tasks.rows():
        counts.setdefault(task.wave, Counter())[progress.status] += 1
    last = max(counts, default=0)
    return tuple(
        WaveView(number=wave, of=last, counts={status: counts[wave][status] for status in Status})
        for wave in sorted(counts)
    )


class SessionView(Struct, frozen=True, kw_only=True):
    id: SessionId
    seq: int
    """The last entry of the journal that it shows."""
    created_at: float
    updated_at: float
    requirement: str
    started_at: float
    changed_at: float
    """When the last entry was written."""
    engine: Engine
    folder: str
    phase: Phase
    why: str
    running: bool
    """A living engine drives the session."""
    process: int | None
    """The process of that engine."""
    detached: bool
    """The engine runs in the background, and waits at questions."""
    outcome: OutcomeView
    tasks: tuple[TaskView, ...]
    omitted: Mapping[Status, int]
    """How many tasks there was no room for, by status."""
    counts: Mapping[Status, int]
    waves: tuple[WaveView, ...]
    """In the order in which they run; none for the beat engine."""
    gates: tuple[GateView, ...]
    needs: tuple[Need, ...]
    """What needs the user now, the most severe first."""
    team: TeamView
    branch: BranchView
    usage: Usage
    spending: SpendingView
    pauses: tuple[PauseView, ...]
    environments: tuple[str, ...]
    """What was installed for the programs in workspaces, and how long it took."""
    warnings: tuple[str, ...]
    stall: str
    feedback: str
    """How much feedback is open, in a few words; empty if there is none."""
    debt: str


def session_view(
    state: State,
    team: TeamViews,
    *,
    engine_alive: bool = True,
    process: int | None = None,
    room: int | None = None,
    zone: tzinfo = ids.ZONE,
) -> SessionView:
    """The session as it is; without a living engine, what is called running is not.

    With more tasks than there is room for, only those are shown that say most.
    """
    tasks, described = state.tasks, team.view(state)
    outcome = outcome_view(state, described.shortcomings)
    gates = tuple(gate_view(gate, team, state) for gate in state.gates.open.values())
    chosen = tasks.order if room is None else excerpt(state, room)
    shown = sorted(chosen, key=lambda task: (tasks.plan[task].wave, tasks.order[task]))
    return SessionView(
        id=state.session.id,
        seq=state.seq,
        created_at=state.created_at,
        updated_at=state.updated_at,
        requirement=state.session.requirement,
        started_at=state.created_at,
        changed_at=state.updated_at,
        engine=state.session.engine,
        folder=state.session.folder,
        phase=state.lifecycle.phase,
        why=state.why,
        running=engine_alive,
        process=process,
        detached=engine_alive and state.lifecycle.detached,
        outcome=outcome,
        tasks=tuple(task_view(state, team, task, engine_alive=engine_alive, zone=zone) for task in shown),
        omitted=Counter(tasks.status(task) for task in tasks.order.keys() - shown),
        counts={status: state.tasks.count(status) for status in Status},
        waves=wave_views(state.tasks) if state.session.engine is Engine.wave else (),
        gates=gates,
        needs=needs(state, outcome, gates, described.verdicts, engine_alive=engine_alive, zone=zone),
        team=described,
        branch=BranchView(
            name=ids.branch(state.session.id),
            into=state.session.branch,
            base=state.branch.base,
            tip=state.branch.tip,
            has_changes=state.branch.tip != state.branch.base,
            accepted=state.lifecycle.accepted,
        ),
        usage=state.spending.total,
        spending=spending_view(state),
        pauses=pauses(state, zone),
        environments=tuple(state.environments),
        warnings=merged(state.warnings),
        stall=stall(state, engine_alive=engine_alive),
        feedback=open_feedback(state),
        debt=open_debt(state),
    )


def spending_view(state: State) -> SpendingView:
    tasks = state.tasks
    rows = [(task, progress.usage) for task, progress in tasks.rows()]
    removed = (progress.usage for task, progress in tasks.removed.items() if task not in tasks.progress)
    undone = ("rolled back", sum(removed, Usage()))
    return SpendingView(
        roles=_sums([*((task.role, usage) for task, usage in rows), undone]),
        tasks=_sums([*((task.id, usage) for task, usage in rows), undone]),
        agents=_sums(state.spending.by_agent.items()),
    )


def _sums(parts: Iterable[tuple[str, Usage]]) -> dict[str, Usage]:
    total: dict[str, Usage] = {}
    for name, usage in parts:
        if usage != Usage():
            total[str(name)] = total.get(str(name), Usage()) + usage
    return total


def open_feedback(state: State) -> str:
    count = sum(item.is_open for item in state.feedback)
    urgent = len(feedback.urgent(state.feedback))
    return f"{count} open, {urgent} of high or critical severity" if count else ""


def open_debt(state: State) -> str:
    """The debt by severity, the most severe first."""
    unresolved = tech_debt.unresolved(state.debt)
    counts = {severity: sum(item.severity is severity for item in unresolved) for severity in Severity}
    parts = ", ".join(f"{count} {severity}" for severity, count in counts.items() if count)
    return f"{len(unresolved)} open ({parts})" if unresolved else ""


def spending_lines(view: SessionView) -> list[str]:
    groups = (("role", view.spending.roles), ("task", view.spending.tasks), ("agent", view.spending.agents))
    return [f"by {name}: {in_one_line(usages)}" for name, usages in groups]


def session_document(view: SessionView) -> Document:
    """What `--json` prints of a session."""
    return {
        "session": view.id,
        "seq": view.seq,
        "requirement": view.requirement,
        "pipeline": view.team.pipeline,
        "engine": view.engine,
        "phase": view.phase,
        "succeeded": view.outcome.succeeded,
        "reasons": view.outcome.reasons,
        "why": view.why,
        "gates": list(map(gate_document, view.gates)),
        "needs": [msgspec.to_builtins(need) for need in view.needs],
        "counts": {status.value: count for status, count in view.counts.items()},
        **view.team.fields,
        "branch": view.branch.name,
        "tip": view.branch.tip,
        "folder": view.folder,
        "usage": msgspec.to_builtins(view.usage),
        "spending": msgspec.to_builtins(view.spending),
        "pauses": [
            {"provider": pause.provider, "agents": pause.agents, "until": pause.until, "why": pause.why}
            for pause in view.pauses
        ],
        "environments": view.environments,
        "warnings": view.warnings,
        "stall": view.stall,
        "accepted": view.branch.accepted,
        "feedback": view.feedback,
        "debt": view.debt,
        "tasks": [_task_document(task) for task in view.tasks],
        "running": view.running,
        "process": view.process,
        "detached": view.detached,
    }


def _task_document(task: TaskView) -> Document:
    facts = ("id", "role", "title", "wave", "deps", "status", "mark", "note", "agent")
    measured = ("requests", "started_at", "ended_at", "cost_usd", "tokens")
    return {
        **{name: getattr(task, name) for name in facts},
        **task.result.notes.fields,
        **{name: getattr(task, name) for name in measured},
    }


class SessionLine(Struct, frozen=True):
    summary: SessionSummary
    running: bool
    """A living engine drives the session."""

    @property
    def standing(self) -> str:
        """Where the session stands, and how its work ended, in a few words."""
        summary = self.summary
        if self.running:
            return "running (waiting)" if summary.waiting and not summary.attempts else "running"
        if summary.outcome:
            words = [summary.outcome.value, *["accepted"] * summary.accepted]
            if summary.phase is not Phase.completed:
                words.insert(0, summary.phase)
            return f"{words[0]} ({', '.join(words[1:])})" if words[1:] else words[0]
        return "waiting" if summary.waiting else "interrupted" if summary.attempts else summary.phase
