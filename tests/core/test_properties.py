"""What holds for every session, whatever the table, the agents, the user and the machine do.

A small simulator plays the world: it carries out what `decide` returns, lets agents end as it likes, answers
questions, kills the engine and edits the table. Each property then looks at the whole history.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import Struct

from iterdev.core import critic, plan
from iterdev.core import events as e
from iterdev.core.decide import Command, Land, Record, Start, Wait, decide
from iterdev.core.fold import evolve, replay
from iterdev.core.graph import CycleError, depths
from iterdev.core.plan import Task
from iterdev.core.request import Request, new_session
from iterdev.core.results import Usage, Wisdom
from iterdev.core.settings import Limits, Settings
from iterdev.core.state import State
from iterdev.core.words import Engine, Mode, Pipeline, Role, SessionId, Signal, Status, TaskId
from iterdev.store import codec
from tests.core.conftest import a_design, measured, review

MANY_STEPS = 3000
PREFIXES = {
    Role.architect: ("DESIGN-{:03d}",),
    Role.developer: ("DEV-{:03d}", "DEV-{}", "DEV-fix-{}"),
    Role.tester: ("VERIFY-{:03d}",),
    Role.reviewer: ("REVIEW-{:03d}", "REVIEW-{}"),
    Role.gc_controller: ("GC-CHECK-{:03d}",),
}
LOST = {Status.failed, Status.skipped}

seldom = st.integers(0, 19).map(lambda number: number == 19)
often = st.integers(0, 3).map(lambda number: number != 3)


class Step(Struct, frozen=True):
    """One decision, and what was known when it was made."""

    state: State
    commands: tuple[Command, ...]


class History:
    """A session from its first event to its end."""

    def __init__(self, entries: list[e.Entry], state: State) -> None:
        self.entries, self.state = entries, state
        self.steps: list[Step] = []
        self.ending = ""
        self.tampered = False
        """A person edited the table or asked for the failed tasks again."""

    def __repr__(self) -> str:
        """Short enough to read when a property fails: the rows, then what happened to them."""
        told = [*map(_row, self.state.tasks.values()), *(_event(entry.event) for entry in self.entries)]
        return "\n".join([f"{self.state.session.engine} {self.state.policy}", *told])[:8000]

    def starts(self) -> Iterator[tuple[State, Start]]:
        for step in self.steps:
            for command in step.commands:
                if isinstance(command, Start):
                    yield step.state, command

    def seen(self, *kinds: type) -> list[e.Event]:
        return [entry.event for entry in self.entries if isinstance(entry.event, kinds)]


def _row(row: Task) -> str:
    return f"  {row.id} {row.mode} {row.pipeline} sprint {row.sprint} wave {row.wave} after {', '.join(row.deps)}"


def _event(event: e.Event) -> str:
    match event:
        case e.SessionStarted() | e.TasksAdded():
            return type(event).__name__
        case e.AttemptEnded(task, _, _, outcome):
            return f"{task} {type(outcome).__name__}"
        case _:
            return repr(event)[:200]


@st.composite
def tables(draw: st.DrawFn) -> list[Task]:
    """Rows without a fault, in any order; dependencies go back to rows that were drawn before."""
    pipelines = draw(st.sampled_from(((Pipeline.sprint,), (Pipeline.multi_sprint,), tuple(Pipeline))))
    sprints = draw(st.integers(1, 2))
    rows: list[Task] = []
    for number in range(1, draw(st.integers(1, 30)) + 1):
        role = draw(st.sampled_from(Role))
        deps = draw(st.lists(st.sampled_from(rows[-6:]), max_size=3, unique_by=lambda row: row.id)) if rows else []
        names = tuple(row.id for row in deps)
        interactive = role is Role.gc_controller or draw(seldom)
        rows.append(
            Task(
                id=TaskId(draw(st.sampled_from(PREFIXES[role])).format(number)),
                title=f"row {number}",
                description="work",
                role=role,
                pipeline=draw(st.sampled_from(pipelines)),
                sprint=draw(st.integers(1, sprints)),
                round=int(role is Role.developer and draw(seldom)),
                deps=names,
                context_from=names,
                mode=Mode.interactive if interactive else Mode.csv_wave,
            )
        )
    return rows


@st.composite
def beginnings(draw: st.DrawFn) -> list[e.Event]:
    """The first events of a session, as the command line would make them."""
    rows: tuple[e.RowEdit, ...] = ()
    if draw(often):
        tasks = plan.with_waves(draw(tables()))
        done = draw(seldom)
        statuses = st.sampled_from((Status.pending, Status.completed, Status.failed, Status.skipped))
        rows = tuple(e.RowEdit(task=row, status=draw(statuses) if done else Status.pending) for row in tasks)
    request = Request(
        requirement="Refactor across modules",
        auto=draw(st.booleans()),
        concurrency=draw(st.integers(1, 5)),
        pipeline=draw(st.sampled_from((None, *Pipeline))),
        engine=draw(st.sampled_from(Engine)),
    )
    limits = Limits(rounds=draw(st.integers(0, 3)), wave=draw(st.sampled_from((100_000, 900))))
    return new_session(
        request, Settings(limits=limits), session=SessionId("ids-x-20260308"), base="b", branch="main", rows=rows
    )


class World:
    """Agents, git, the user, the clock and the power supply."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw
        events = draw(beginnings())
        entries = [e.Entry(seq, 1000.0, event) for seq, event in enumerate(events, 1)]
        state = replay(entries)
        assert state
        self.history = History(entries, state)
        self.now = 1000.0
        self._left = Counter(crashes=2, limits=6, retries=2, edits=1)

    def live(self) -> History:
        history = self.history
        self._append(e.EngineStarted(1, "b"))
        for _ in range(MANY_STEPS):
            if history.state.is_over and not self._tried_again():
                history.ending = "over"
                return history
            self._disturb()
            commands = decide(history.state, self.now)
            history.steps.append(Step(history.state, commands))
            if not self._carried_out(commands) and not self._waited(commands):
                history.ending = "stuck"
                return history
        history.ending = "endless"
        return history

    def _append(self, *events: e.Event) -> None:
        history = self.history
        entries = [e.Entry(history.state.seq + number, self.now, event) for number, event in enumerate(events, 1)]
        history.entries += entries
        history.state = evolve(history.state, entries)

    def _spend(self, what: str) -> bool:
        """Whether a seldom thing happens now; each kind only so often, so that every history ends."""
        happens = self._left[what] > 0 and self._draw(seldom)
        self._left[what] -= happens
        return happens

    def _disturb(self) -> None:
        if self._spend("crashes"):
            self._crash()
        if self.history.state.tasks and self._spend("edits"):
            self._edit()

    def _crash(self) -> None:
        """The engine dies; another one takes the session up and ends what was under way."""
        self.now += self._draw(st.sampled_from((0, 5000)))
        for task, attempt in list(self.history.state.running.items()):
            self._append(e.AttemptEnded(task, attempt.number, 1, e.Interrupted(commit="kept")))
        self._append(e.EngineStarted(2, self.history.state.tip))

    def _edit(self) -> None:
        """A person changes the status or the dependencies of a row, and the table has no fault afterwards."""
        state = self.history.state
        row = self._draw(st.sampled_from(list(state.tasks.values())))
        deps = self._draw(st.lists(st.sampled_from(list(state.tasks)), max_size=2, unique=True))
        changed = msgspec.structs.replace(row, deps=tuple(deps), context_from=())
        table = [changed if other.id == row.id else other for other in state.tasks.values()]
        status = self._draw(st.sampled_from((Status.pending, Status.completed, Status.failed, Status.skipped)))
        if plan.first_fault(table) is None:
            self.history.tampered = True
            self._append(e.TableEdited((e.RowEdit(task=changed, status=status),)))

    def _tried_again(self) -> bool:
        lost = [task for task, progress in self.history.state.progress.items() if progress.status in LOST]
        if not lost or not self._spend("retries"):
            return False
        self.history.tampered = True
        self._append(e.TasksReset(tuple(lost)), e.EngineStarted(3, self.history.state.tip))
        return True

    def _carried_out(self, commands: Sequence[Command]) -> bool:
        for command in commands:
            match command:
                case Record(events):
                    self._append(*events)
                case Start(task=task, number=number):
                    self._append(e.AttemptStarted(task, number, "mine", self.history.state.tip))
                case Land(task):
                    refused = self._draw(seldom)
                    self._append(e.LandingRefused(task, ("a.py",)) if refused else e.Landed(task, f"tip {task}"))
                case Wait(until):
                    self.now = max(self.now, until)
        return bool(commands)

    def _waited(self, _commands: Sequence[Command]) -> bool:
        """Something happens that nobody decided: an agent ends, or the user answers."""
        state = self.history.state
        if state.running:
            task = self._draw(st.sampled_from(list(state.running)))
            self.now += self._draw(st.sampled_from((1, 400)))
            outcome = self._outcome(state.tasks[task])
            self._append(e.AttemptEnded(task, state.running[task].number, self._draw(st.integers(1, 3)), outcome))
            return True
        if state.gates:
            gate = next(iter(state.gates.values()))
            choices = gate.choices if self._left["retries"] > 0 or "retry" not in gate.choices else ("abort",)
            choice = self._draw(st.sampled_from(choices))
            self._left["retries"] -= choice == "retry"
            self._append(e.GateAnswered(gate.id, choice))
            return True
        return False

    def _outcome(self, task: Task) -> e.Outcome:
        kind = self._draw(st.integers(0, 11))
        if kind == 11:
            return e.Failed(error="it broke", usage=Usage(cost_usd=0.5))
        if kind == 10 and self._left["limits"]:
            self._left["limits"] -= 1
            return e.Limited(error="429", reset_at=self.now + self._draw(st.sampled_from((-1, 0, 50, 5000))))
        return self._done(task)

    def _done(self, task: Task) -> e.Done:
        writes = task.role in {Role.developer, Role.tester} and self._draw(often)
        done = e.Done(
            findings=f"findings of {task.id}",
            commit=f"commit {task.id}" if writes else None,
            changed=("a.py",) if writes else (),
            usage=Usage(input_tokens=10, output_tokens=1),
            wisdom=Wisdom(learnings=("remember",)) if writes else Wisdom(),
        )
        match task.role:
            case Role.architect:
                return msgspec.structs.replace(done, design=a_design())
            case Role.tester:
                rate = self._draw(st.sampled_from((1.0, 0.95, 0.94, 0.0, None)))
                return msgspec.structs.replace(done, verification=measured(rate), iterations=int(writes))
            case Role.reviewer:
                score = self._draw(st.sampled_from((9.0, 7.0, 6.9, 2.0)))
                severities = self._draw(st.lists(st.sampled_from(("critical", "HIGH", "medium", "low")), max_size=2))
                return msgspec.structs.replace(done, review=review(score, *severities))
            case _:
                return done


@st.composite
def histories(draw: st.DrawFn) -> History:
    return World(draw).live()


@given(histories())
def test_every_session_ends(history: History) -> None:
    assert history.ending == "over", history.state.session.engine
