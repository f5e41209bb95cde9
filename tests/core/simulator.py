"""A small simulator that plays the world of a session, for properties that hold whatever happens.

It carries out what `decide` returns, lets agents end as chance will have it, answers questions, kills the engine,
rolls back and edits the table. It knows no team: the team and the work of its agents are given.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random

import msgspec
from msgspec import Struct

from iterdev.core.collaboration import checkpoints, feedback, locks
from iterdev.core.collaboration.feedback import Feedback
from iterdev.core.collaboration.locks import LockRequest
from iterdev.core.collaboration.messages import Escalation, compose
from iterdev.core.errors import UserError
from iterdev.core.limits import budget
from iterdev.core.limits.agent_failures import FailureKind
from iterdev.core.limits.budget import DaySpent
from iterdev.core.limits.providers import ProviderPaused, shared_pauses
from iterdev.core.results import Usage
from iterdev.core.rules import landings, rollback
from iterdev.core.rules.decide import decide
from iterdev.core.rules.outcomes import attempt_ended, landed, landing_refused
from iterdev.core.rules.record import record
from iterdev.core.rules.schedule import Cancel, Command, Land, Record, RunLandingTest, Start, Wait
from iterdev.core.rules.team_rules import TeamRules
from iterdev.core.session import events as session_events
from iterdev.core.session import fold
from iterdev.core.session.attempts import AttemptReport, LandingTestReport, Success
from iterdev.core.session.events import Entry, Event, Failed, Interrupted, Limited
from iterdev.core.session.gates import WaveChoice
from iterdev.core.session.landing_events import LandingTestStarted
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Fault, Task, checked
from iterdev.core.types import UNSUCCESSFUL, Severity, Status, TaskId
from iterdev.core.verification import Verification

AGENTS = ("claude", "codex", "gemini", "mine")
WRITTEN = (Status.pending, Status.completed, Status.failed, Status.skipped)

Work = Callable[[Random, Task], Success]
"""What the agent of a task hands in when nothing goes wrong."""


class Step(Struct, frozen=True):
    """One decision, and what it was made from."""

    state: State
    now: float
    commands: tuple[Command, ...]

    @property
    def starts(self) -> list[TaskId]:
        return [command.task for command in self.commands if isinstance(command, Start)]


class History:
    """A session from its first event to its end."""

    def __init__(self, entries: list[Entry], state: State) -> None:
        self.entries, self.state = entries, state
        self.steps: list[Step] = []
        self.ending = ""

    def __repr__(self) -> str:
        """Short enough to read when a property fails: the rows, then what happened to them."""
        told = [*map(_row, self.state.tasks.plan.values()), *(_event(entry.event) for entry in self.entries)]
        return "\n".join([f"{self.state.session.engine} {self.state.policy}", *told])[:8000]

    @property
    def plan_was_run(self) -> bool:
        return self.state.lifecycle.why != session_events.Finished.WHY_REJECTED

    @property
    def settled_by_hand(self) -> set[TaskId]:
        """Rows that a person gave a status."""
        rows = (row for event in self.seen(session_events.TableEdited) for row in event.rows)
        return {row.task.id for row in rows if row.status is not Status.pending}

    def seen(self, *kinds: type) -> list[Event]:
        return [entry.event for entry in self.entries if isinstance(entry.event, kinds)]


def _row(row: Task) -> str:
    return f"  {row.id} {row.mode} {row.fields} wave {row.wave} after {', '.join(row.deps)}"


def _event(event: Event) -> str:
    match event:
        case session_events.SessionStarted() | session_events.TasksAdded():
            return type(event).__name__
        case session_events.AttemptEnded(task=task, outcome=outcome):
            return f"{task} {type(outcome).__name__}"
        case _:
            return repr(event)[:200]


class World:
    """Agents, git, the user, the clock and the power supply."""

    def __init__(
        self,
        chance: Random,
        team: TeamRules,
        beginning: Sequence[Event],
        work: Work,
        *,
        edits: int = 0,
        rollbacks: int = 0,
        talks: int = 0,
    ) -> None:
        self._chance, self._team, self._work = chance, team, work
        self.now = 1000.0
        first = Entry(1, self.now, beginning[0])
        state = fold.replay([first], team)
        assert state
        self.history = History([first], state)
        self._append(*beginning[1:])
        self._left = Counter(
            crashes=2, limits=6, pauses=3, troubles=6, retries=2, edits=edits, rollbacks=rollbacks, talks=talks
        )
        self._branch = state.branch.tip
        """The names of everything that landed, one after the other."""
        self._today = Usage()

    def live(self) -> History:
        history = self.history
        self._append(session_events.EngineStarted(1, self._branch))
        for _ in range(3000):
            if history.state.lifecycle.is_over and not self._tried_again() and not self._went_back():
                history.ending = "over"
                return history
            self._disturb()
            commands = decide(history.state, self._team, self.now)
            history.steps.append(Step(history.state, self.now, commands))
            if not self._carried_out(commands) and not self._waited():
                history.ending = "stuck"
                return history
        history.ending = "endless"
        return history

    def _append(self, *events: Event) -> None:
        history = self.history
        entries, history.state = record(history.state, self._team, events, self.now)
        history.entries += entries

    def _happens(self, what: str, likelihood: float) -> bool:
        """Each kind of trouble happens only so often, so that every history can end."""
        if self._left[what] <= 0 or self._chance.random() >= likelihood:
            return False
        self._left[what] -= 1
        return True

    def _disturb(self) -> None:
        if self._happens("crashes", 0.03):
            self._crash()
        self._went_back()
        if self._happens("pauses", 0.03):
            self._hear_of_a_pause()
        state = self.history.state
        if budget.has_day_budget(state.policy) and self._today != state.spending.today:
            self._append(DaySpent(0, self._today))
        if state.tasks.plan and self._happens("edits", 0.03):
            self._edit()
        if self._happens("talks", 0.5):
            self._talk()

    def _hear_of_a_pause(self) -> None:
        """Another run on the same machine ran into a limit."""
        until, state = self.now + self._chance.choice((-1, 0, 50, 5000)), self.history.state
        told = [ProviderPaused(state.agents.provider_of(self._chance.choice(AGENTS)), until, "429")]
        self._append(*shared_pauses(state.providers, state.agents, state.policy, told, self.now))

    def _talk(self) -> None:
        """An agent or a person uses what the team shares: feedback, locks, checkpoints, messages."""
        chance, state = self._chance, self.history.state
        severity = chance.choice(list(Severity))
        said = Feedback(description="a word of the user " * 5, severity=severity, timestamp=self.now)
        self._append(feedback.give(state.feedback, said, kept=state.policy.feedback_kept))
        if not state.attempts.running:
            return
        running = chance.sample(list(state.attempts.running), len(state.attempts.running))
        for task, resource in [(running[0], "a"), (running[-1], "b"), (running[0], "b"), (running[-1], "a")]:
            if chance.random() < 0.7:
                self._lock(task, resource)
        name, saved = running[0], self.history.state.checkpoints
        self._append(checkpoints.save(saved, name, self.now, kept=state.policy.checkpoints_kept))
        kind = chance.choice((*Escalation, "progress", "state_update"))
        sender, data = state.tasks.plan[name].role, {"severity": chance.choice(list(Severity))}
        self._append(compose(sender, kind=kind, summary="a word", data=data, task=name))

    def _lock(self, task: TaskId, resource: str) -> None:
        state = self.history.state
        ask = LockRequest(resource=resource, task=task, role=state.tasks.plan[task].role)
        self._append(*locks.request(state.locks, ask, self.now, state.policy, started=state.started))

    def _crash(self) -> None:
        """The engine dies; another one takes the session up and ends what was under way."""
        self.now += self._chance.choice((0, 5000))
        for task in list(self.history.state.attempts.running):
            self._end(task, Interrupted(commit="kept"))
        self._append(session_events.EngineStarted(2, self._branch))

    def _end(self, task: TaskId, outcome: Success | Failed | Limited | Interrupted, requests: int = 1) -> None:
        state = self.history.state
        started = state.attempts.running[task]
        report = AttemptReport(
            task=task, number=started.number, fence=started.fence, requests=requests, outcome=outcome
        )
        self._append(*attempt_ended(state, self._team, report, self.now))

    def _went_back(self) -> bool:
        """Somebody stops the engine, undoes what a task or a wave did, and lets another engine go on."""
        if not self.history.state.tasks.plan or not self._happens("rollbacks", 0.03):
            return False
        self._crash()
        tasks = self.history.state.tasks
        done = [task for task, progress in tasks.progress.items() if progress.status is Status.completed]
        waves = [f"wave-{row.wave}" for row in tasks.plan.values()]
        with suppress(UserError):
            planned = rollback.plan(self.history.entries, self._team, self._chance.choice([*done, *waves]))
            self._append(*planned)
            self._branch = self.history.state.branch.tip
            self._append(
                session_events.RollbackCompleted(self.history.state.branch.rewind),
                session_events.EngineStarted(4, self._branch),
            )
        return True

    def _edit(self) -> None:
        """A person changes the status or the dependencies of a row, and the table has no fault afterwards."""
        chance, plan = self._chance, self.history.state.tasks.plan
        row = chance.choice(list(plan.values()))
        if chance.random() < 0.5:
            deps = chance.sample(list(plan), min(2, len(plan)))
            row = msgspec.structs.replace(row, deps=tuple(deps), context_from=())
        table = [row if other.id == row.id else other for other in plan.values()]
        if not isinstance(checked(table), Fault):
            status = chance.choice(WRITTEN)
            left_out = status is Status.skipped and self.history.state.seq % 2 == 0
            edit = session_events.RowEdit(task=row, status=status, left_out=left_out)
            self._append(session_events.TableEdited((edit,)))

    def _tried_again(self) -> bool:
        progress = self.history.state.tasks.progress
        unsuccessful = [task for task, one in progress.items() if one.status in UNSUCCESSFUL]
        if not unsuccessful or not self._happens("retries", 0.3):
            return False
        self._append(session_events.TasksReset(tuple(unsuccessful)), session_events.EngineStarted(3, self._branch))
        return True

    def _carried_out(self, commands: Sequence[Command]) -> bool:
        for command in commands:
            match command:
                case Record(events):
                    self._append(*events)
                case Start(task=task, number=number, agent=agent):
                    self._append(session_events.AttemptStarted(task, number, agent, self.history.state.branch.tip))
                case Land(task):
                    self._land(task)
                case RunLandingTest(tasks):
                    self._test(tasks)
                case Cancel(task):
                    self._end(task, Interrupted())
                case Wait(until):
                    self.now = max(self.now, until)
        return bool(commands)

    def _land(self, task: TaskId) -> None:
        """The branch moves, and then it is noted; whoever notes it need not be who moved it."""
        if not self._branch.endswith(f" {task}"):
            if self._chance.random() < 0.1:
                refused = landing_refused(self.history.state, self._team, task, ("a.py",), self._branch)
                self._append(*refused)
                return
            self._branch += f" {task}"
            if self._happens("crashes", 0.1):
                self._crash()
                return
        self._append(*landed(self.history.state, self._team, task, self._branch))

    def _test(self, tasks: tuple[TaskId, ...]) -> None:
        """Git merges some of the work, and the first one that it cannot merge is in conflict."""
        merged = tasks if self._chance.random() < 0.9 else tasks[: self._chance.randint(0, len(tasks) - 1)]
        tip = self.history.state.branch.tip
        if merged:
            self._append(LandingTestStarted(tasks=merged, tip=tip, commit=" ".join((tip, *merged))))
        else:
            self._append(*landing_refused(self.history.state, self._team, tasks[0], ("a.py",), tip))

    def _end_of_test(self) -> None:
        state, rate = self.history.state, self._chance.choice((1.0, 1.0, None, 0.5))
        tests = Verification(command="pytest", pass_rate=rate, failures=("test_a",) if rate == 0.5 else ())
        found = tests if self._chance.random() < 0.9 else None
        tasks = state.landing_queue.testing.tasks
        self._append(*landings.tested(state, self._team, LandingTestReport(tasks=tasks, verification=found)))

    def _waited(self) -> bool:
        """Something happens that nobody decided: an agent or a test run ends, or the user answers."""
        state = self.history.state
        if state.landing_queue.testing and (not state.attempts.running or self._chance.random() < 0.3):
            self._end_of_test()
            return True
        if state.attempts.running:
            task = self._chance.choice(list(state.attempts.running))
            self.now += self._chance.choice((1, 400))
            requests = self._chance.randint(0, 3)
            outcome = self._outcome(state.tasks.plan[task])
            self._today += outcome.usage
            self._end(task, outcome, requests)
        elif state.gates.open:
            gate = next(iter(state.gates.open.values()))
            self._append(session_events.GateAnswered(gate.id, self._choice(gate)))
        return bool(state.attempts.running or state.gates.open)

    def _choice(self, gate: session_events.Gate) -> str:
        if WaveChoice.retry in gate.choices:
            return WaveChoice.retry if self._happens("retries", 0.5) else WaveChoice.abort
        return self._chance.choice(gate.choices * 3 + gate.choices[:1] * 10)

    def _outcome(self, task: Task) -> Success | Failed | Limited:
        if self._chance.random() < 0.07:
            return Failed(error="it broke", usage=Usage(cost_usd=0.5))
        if self._happens("limits", 0.1):
            reset_at = self._chance.choice((None, self.now - 1, self.now, self.now + 50, self.now + 5000))
            return Limited(error="429", reset_at=reset_at, usage=Usage(input_tokens=3))
        if self._happens("troubles", 0.1):
            return Failed(error="trouble", kind=self._chance.choice(list(FailureKind)))
        return self._work(self._chance, task)
