"""What holds for every session, whatever the table, the agents, the user and the machine do.

A small simulator plays the world: it carries out what `decide` returns, lets agents end as chance will have it,
answers questions, kills the engine, goes back and edits the table. Each property then looks at the whole history.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as chosen
from hypothesis import strategies as st
from msgspec import Struct
from tests.core.conftest import a_design, measured, review

from iterdev.core.errors import UserError
from iterdev.core.ids import role_of
from iterdev.core.limits import budget
from iterdev.core.limits.agent_failures import FailureKind, Reaction, reaction
from iterdev.core.limits.providers import chain, news, others, provider_of
from iterdev.core.request import Request, new_session
from iterdev.core.results import LearnedTexts, Usage
from iterdev.core.session import events as session_events
from iterdev.core.session import rollback
from iterdev.core.session.decide import decide
from iterdev.core.session.fold import evolve, replay
from iterdev.core.session.schedule import Command, Land, Record, Start, Wait
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Fault, Task, checked, with_waves
from iterdev.core.settings import AgentSettings, Limits, RoleSettings, Run, Settings
from iterdev.core.types import FINAL, UNSUCCESSFUL, Engine, Mode, SessionId, Status, TaskId
from iterdev.store import journal
from iterdev.teams.development import critic
from iterdev.teams.development.fields import WORKERS, Pipeline, Role, Signal
from iterdev.teams.development.results import Milestone
from iterdev.teams.development.state import development

AGENTS = ("claude", "codex", "gemini", "mine")
REPLACED = {Reaction.change_agent, Reaction.change_here, Reaction.insist}
WRITTEN = (Status.pending, Status.completed, Status.failed, Status.skipped)
NAMES = {
    Role.architect: ("DESIGN-{:03d}",),
    Role.developer: ("DEV-{:03d}", "DEV-{}", "DEV-fix-{}"),
    Role.tester: ("VERIFY-{:03d}",),
    Role.reviewer: ("REVIEW-{:03d}", "REVIEW-{}"),
    Role.gc_controller: ("GC-CHECK-{:03d}",),
}


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

    def __init__(self, entries: list[session_events.Entry], state: State) -> None:
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

    def seen(self, *kinds: type) -> list[session_events.Event]:
        return [entry.event for entry in self.entries if isinstance(entry.event, kinds)]


def _row(row: Task) -> str:
    return f"  {row.id} {row.mode} {row.pipeline} sprint {row.sprint} wave {row.wave} after {', '.join(row.deps)}"


def _event(event: session_events.Event) -> str:
    match event:
        case session_events.SessionStarted() | session_events.TasksAdded():
            return type(event).__name__
        case session_events.AttemptEnded(task, _, _, outcome):
            return f"{task} {type(outcome).__name__}"
        case _:
            return repr(event)[:200]


def a_table(chance: Random, size: int) -> list[Task]:
    """Rows without a fault, in any order; each depends on some of those that were made shortly before it."""
    pipelines = chance.choice(((Pipeline.sprint,), (Pipeline.multi_sprint,), tuple(Pipeline)))
    sprints = chance.choice((1, 1, 2))
    rows: list[Task] = []
    for number in range(1, size + 1):
        role = chance.choice(list(Role))
        near = rows[-6:]
        deps = tuple(row.id for row in chance.sample(near, chance.randint(0, min(3, len(near)))))
        talks = role is Role.gc_controller or chance.random() < 0.1
        rows.append(
            Task(
                id=TaskId(chance.choice(NAMES[role]).format(number)),
                title=f"row {number}",
                description="work",
                role=role,
                pipeline=chance.choice(pipelines),
                sprint=chance.randint(1, sprints),
                round=int(role is Role.developer and chance.random() < 0.1),
                deps=deps,
                context_from=deps,
                mode=Mode.interactive if talks else Mode.csv_wave,
            )
        )
    chance.shuffle(rows)
    return rows


def some_agents(chance: Random) -> dict[str, AgentSettings]:
    """Agents of which some have the same provider; each may have one of the later ones to take over."""
    return {
        name: AgentSettings(
            command=(chance.choice(AGENTS),),
            fallback=chance.choice((None, *AGENTS[place + 1 :])) if place < 3 else None,
        )
        for place, name in enumerate(AGENTS)
    }


def a_beginning(chance: Random, size: int) -> list[session_events.Event]:
    """The first events of a session, as the command line would make them."""
    rows: tuple[session_events.RowEdit, ...] = ()
    if chance.random() < 0.6:
        statuses = WRITTEN if chance.random() < 0.1 else (Status.pending,)
        tasks = with_waves(a_table(chance, size))
        rows = tuple(session_events.RowEdit(task=row, status=chance.choice(statuses)) for row in tasks)
    request = Request(
        requirement="Refactor across modules",
        auto=chance.random() < 0.5,
        concurrency=chance.randint(1, 5),
        pipeline=chance.choice((None, *Pipeline)),
        engine=chance.choice(list(Engine)),
    )
    settings = Settings(
        run=Run(
            agent=chance.choice(AGENTS),
            budget_tokens=chance.choice((None, None, None, 60)),
            task_budget_tokens=chance.choice((None, None, None, 15)),
            day_budget_tokens=chance.choice((None, None, None, 90)),
        ),
        roles={role: RoleSettings(agent=chance.choice((None, *AGENTS))) for role in WORKERS},
        agents=some_agents(chance),
        limits=Limits(rounds=chance.randint(0, 3), wave=chance.choice((100_000, 900))),
    )
    return new_session(request, settings, session=SessionId("ids-x-20260308"), base="b", branch="main", rows=rows)


class World:
    """Agents, git, the user, the clock and the power supply."""

    def __init__(
        self, chance: Random, beginning: Sequence[session_events.Event], *, edits: int, rollbacks: int
    ) -> None:
        self._chance = chance
        self.now = 1000.0
        entries = [session_events.Entry(seq, self.now, event) for seq, event in enumerate(beginning, 1)]
        state = replay(entries)
        assert state
        self.history = History(entries, state)
        self._left = Counter(crashes=2, limits=6, pauses=3, troubles=6, retries=2, edits=edits, rollbacks=rollbacks)
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
            commands = decide(history.state, self.now)
            history.steps.append(Step(history.state, self.now, commands))
            if not self._carried_out(commands) and not self._waited():
                history.ending = "stuck"
                return history
        history.ending = "endless"
        return history

    def _append(self, *events: session_events.Event) -> None:
        history = self.history
        entries = [
            session_events.Entry(history.state.seq + number, self.now, event) for number, event in enumerate(events, 1)
        ]
        history.entries += entries
        history.state = evolve(history.state, entries)

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
        if budget.has_day(self.history.state.policy) and self._today != self.history.state.spending.today:
            self._append(session_events.DaySpent(0, self._today))
        if self.history.state.tasks.plan and self._happens("edits", 0.03):
            self._edit()

    def _hear_of_a_pause(self) -> None:
        """Another run on the same machine ran into a limit."""
        until = self.now + self._chance.choice((-1, 0, 50, 5000))
        told = [
            session_events.ProviderPaused(
                provider_of(self.history.state.policy, self._chance.choice(AGENTS)), until, "429"
            )
        ]
        self._append(*news(self.history.state, told, self.now))

    def _crash(self) -> None:
        """The engine dies; another one takes the session up and ends what was under way."""
        self.now += self._chance.choice((0, 5000))
        for task, attempt in list(self.history.state.attempts.running.items()):
            self._append(
                session_events.AttemptEnded(task, attempt.number, 1, session_events.Interrupted(commit="kept"))
            )
        self._append(session_events.EngineStarted(2, self._branch))

    def _went_back(self) -> bool:
        """Somebody stops the engine, undoes what a task or a wave did, and lets another engine go on."""
        if not self.history.state.tasks.plan or not self._happens("rollbacks", 0.03):
            return False
        self._crash()
        done = [
            task for task, progress in self.history.state.tasks.progress.items() if progress.status is Status.completed
        ]
        waves = [f"wave-{row.wave}" for row in self.history.state.tasks.plan.values()]
        with suppress(UserError):
            planned = rollback.plan(self.history.entries, self._chance.choice([*done, *waves]))
            self._branch = planned.tip
            self._append(
                planned,
                session_events.RollbackCompleted(planned.snapshot),
                session_events.EngineStarted(4, self._branch),
            )
        return True

    def _edit(self) -> None:
        """A person changes the status or the dependencies of a row, and the table has no fault afterwards."""
        chance, state = self._chance, self.history.state
        row = chance.choice(list(state.tasks.plan.values()))
        if chance.random() < 0.5:
            deps = chance.sample(list(state.tasks.plan), min(2, len(state.tasks.plan)))
            row = msgspec.structs.replace(row, deps=tuple(deps), context_from=())
        table = [row if other.id == row.id else other for other in state.tasks.plan.values()]
        if not isinstance(checked(table), Fault):
            self._append(session_events.TableEdited((session_events.RowEdit(task=row, status=chance.choice(WRITTEN)),)))

    def _tried_again(self) -> bool:
        lost = [task for task, progress in self.history.state.tasks.progress.items() if progress.status in UNSUCCESSFUL]
        if not lost or not self._happens("retries", 0.3):
            return False
        self._append(session_events.TasksReset(tuple(lost)), session_events.EngineStarted(3, self._branch))
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
                case Wait(until):
                    self.now = max(self.now, until)
        return bool(commands)

    def _land(self, task: TaskId) -> None:
        """The branch moves, and then it is noted; whoever notes it need not be who moved it."""
        if not self._branch.endswith(f" {task}"):
            if self._chance.random() < 0.1:
                self._append(session_events.LandingRefused(task, ("a.py",), self._branch))
                return
            self._branch += f" {task}"
            if self._happens("crashes", 0.1):
                self._crash()
                return
        self._append(session_events.Landed(task, self._branch))

    def _waited(self) -> bool:
        """Something happens that nobody decided: an agent ends, or the user answers."""
        state = self.history.state
        if state.attempts.running:
            task = self._chance.choice(list(state.attempts.running))
            self.now += self._chance.choice((1, 400))
            requests = self._chance.randint(0, 3)
            outcome = self._outcome(state.tasks.plan[task])
            self._today += outcome.usage
            self._append(session_events.AttemptEnded(task, state.attempts.running[task].number, requests, outcome))
        elif state.gates.open:
            gate = next(iter(state.gates.open.values()))
            self._append(session_events.GateAnswered(gate.id, self._choice(gate)))
        return bool(state.attempts.running or state.gates.open)

    def _choice(self, gate: session_events.Gate) -> str:
        if "retry" in gate.choices:
            return "retry" if self._happens("retries", 0.5) else "abort"
        return self._chance.choice(gate.choices * 3 + gate.choices[:1] * 10)

    def _outcome(self, task: Task) -> session_events.Outcome:
        if self._chance.random() < 0.07:
            return session_events.Failed(error="it broke", usage=Usage(cost_usd=0.5))
        if self._happens("limits", 0.1):
            reset_at = self._chance.choice((None, self.now - 1, self.now, self.now + 50, self.now + 5000))
            return session_events.Limited(error="429", reset_at=reset_at, usage=Usage(input_tokens=3))
        if self._happens("troubles", 0.1):
            return session_events.Failed(error="trouble", kind=self._chance.choice(list(FailureKind)))
        return self._done(task)

    def _done(self, task: Task) -> session_events.Done:
        chance = self._chance
        writes = task.role in {Role.developer, Role.tester} and chance.random() < 0.7
        done = session_events.Done(
            findings=f"findings of {task.id}",
            commit=f"commit {task.id}" if writes else None,
            changed=("a.py",) if writes else (),
            usage=Usage(input_tokens=10, output_tokens=1),
            wisdom=LearnedTexts(learnings=("remember",)) if writes else LearnedTexts(),
        )
        match task.role:
            case Role.architect:
                goals = chance.choice((0, 0, 2, 3))
                milestones = tuple(Milestone(title=f"goal {goal}", tasks=()) for goal in range(goals))
                return msgspec.structs.replace(done, design=msgspec.structs.replace(a_design(), milestones=milestones))
            case Role.tester:
                rate = chance.choice((1.0, 0.95, 0.94, 0.0, None))
                return msgspec.structs.replace(done, verification=measured(rate), iterations=int(writes))
            case Role.reviewer:
                severities = chance.choices(("critical", "HIGH", "medium", "low"), k=chance.choice((0, 0, 1, 2)))
                score = chance.choice((9.0, 7.0, 6.9, 2.0))
                return msgspec.structs.replace(done, review=review(score, *severities))
            case _:
                return done


def _histories(*, edits: int, rollbacks: int) -> st.SearchStrategy[History]:
    def live(size: int, chance: Random) -> History:
        return World(chance, a_beginning(chance, size), edits=edits, rollbacks=rollbacks).live()

    return st.builds(live, st.integers(1, 30), st.randoms(use_true_random=True))


histories = _histories(edits=2, rollbacks=2)
onward = _histories(edits=2, rollbacks=0)
"""Histories in which nobody goes back."""
untouched = _histories(edits=0, rollbacks=0)
"""Histories in which nobody edits the table either."""
winding = _histories(edits=0, rollbacks=3)
"""Histories in which somebody goes back, and nobody edits the table."""


def holds_for(strategy: st.SearchStrategy[History], examples: int = 300) -> Callable[..., Callable[[], None]]:
    """The same examples on every machine; a single long history is no reason to fail."""

    def decorate(test: Callable[[History], None]) -> Callable[[], None]:
        relaxed = chosen(max_examples=examples, derandomize=True, deadline=None, database=None)
        return relaxed(given(strategy)(test))

    return decorate


@pytest.mark.requirement("R63", "R64")
@holds_for(histories, examples=1500)
def test_no_session_ever_gets_stuck_or_goes_on_for_ever(history: History) -> None:
    assert history.ending == "over", history


@pytest.mark.requirement("R64")
@holds_for(histories)
def test_a_session_is_over_only_when_every_task_is_final_or_its_plan_was_rejected(history: History) -> None:
    final = all(progress.status.is_final for progress in history.state.tasks.progress.values())

    assert final or not history.plan_was_run, history


@pytest.mark.requirement("R2")
@holds_for(histories)
def test_never_more_attempts_are_open_than_the_concurrency_allows(history: History) -> None:
    for step in history.steps:
        assert len(step.state.attempts.running) + len(step.starts) <= step.state.policy.concurrency, history


@holds_for(histories)
def test_a_task_is_started_only_while_it_is_pending_and_all_its_dependencies_are_completed(history: History) -> None:
    for step in history.steps:
        progress = step.state.tasks.progress
        assert len(set(step.starts)) == len(step.starts), history
        for task in step.starts:
            assert progress[task].status is Status.pending, (task, history)
            assert task not in step.state.attempts.running, (task, history)
            assert all(progress[dep].status is Status.completed for dep in step.state.tasks.plan[task].deps), (
                task,
                history,
            )


@holds_for(winding, examples=600)
def test_no_attempt_is_made_while_another_one_at_the_same_task_is_open_or_after_it_was_done(history: History) -> None:
    open_or_done: set[TaskId] = set()
    for entry in history.entries:
        match entry.event:
            case session_events.AttemptStarted(task):
                assert task not in open_or_done, (task, history)
                open_or_done.add(task)
            case session_events.AttemptEnded(task, _, _, session_events.Limited() | session_events.Interrupted()):
                open_or_done.discard(task)
            case session_events.AttemptEnded(task, _, _, session_events.Failed(kind=kind)) if (
                kind and reaction(kind) in REPLACED
            ):
                open_or_done.discard(task)
            case session_events.TasksReset(tasks):
                open_or_done.difference_update(tasks)
            case session_events.RollbackStarted(rows=rows, removed=removed):
                open_or_done.difference_update(removed, (row.id for row in rows))


@holds_for(histories)
def test_every_attempt_at_a_task_has_a_number_of_its_own(history: History) -> None:
    numbers = [(event.task, event.number) for event in history.seen(session_events.AttemptStarted)]

    assert len(set(numbers)) == len(numbers), history


@pytest.mark.requirement("R59")
@holds_for(histories)
def test_in_the_wave_engine_a_wave_waits_for_all_of_the_waves_before_it(history: History) -> None:
    for step in history.steps:
        if step.state.session.engine is Engine.wave:
            for task in step.starts:
                wave = step.state.tasks.plan[task].wave
                assert wave == step.state.tasks.wave, (task, history)
                before = [row.id for row in step.state.tasks.plan.values() if row.wave < wave]
                assert all(step.state.tasks.progress[row].status.is_final for row in before), (task, history)


@holds_for(histories)
def test_in_the_wave_engine_a_wave_is_merged_before_the_next_one_is_started(history: History) -> None:
    marks = [
        entry.event
        for entry in history.entries
        if isinstance(
            entry.event,
            session_events.WaveStarted
            | session_events.WaveMerged
            | session_events.TasksReset
            | session_events.TableEdited
            | session_events.RollbackStarted,
        )
    ]
    for before, after in pairwise(marks):
        if isinstance(after, session_events.WaveMerged):
            assert before == session_events.WaveStarted(after.wave), history
        if isinstance(after, session_events.WaveStarted):
            assert not isinstance(before, session_events.WaveStarted), history


@pytest.mark.requirement("R59")
@holds_for(histories)
def test_in_the_wave_engine_interactive_tasks_come_after_the_batch_of_their_wave_and_alone(history: History) -> None:
    for step in history.steps:
        rows = [step.state.tasks.plan[task] for task in step.starts]
        if step.state.session.engine is Engine.wave and any(row.mode is Mode.interactive for row in rows):
            batch = [
                row.id
                for row in step.state.tasks.plan.values()
                if row.wave == step.state.tasks.wave and row.mode is Mode.csv_wave
            ]
            assert len(rows) == 1, history
            assert not step.state.attempts.running, history
            assert all(step.state.tasks.progress[task].status.is_final for task in batch), history


@pytest.mark.requirement("R49", "R50")
@holds_for(untouched)
def test_a_task_is_skipped_exactly_when_a_dependency_was_lost_and_says_which(history: History) -> None:
    state = history.state
    repeated = {task for event in history.seen(session_events.TasksReset) for task in event.tasks}
    for row, progress in state.tasks.rows():
        lost = {dep for dep in row.deps if state.tasks.progress[dep].status in UNSUCCESSFUL}
        if progress.status is Status.completed and lost <= repeated:
            continue  # What it waited for was there when it began, and was lost when it was tried again.
        if history.plan_was_run and row.id not in history.settled_by_hand:
            assert (progress.status is Status.skipped) == bool(lost), (row.id, history)
        if progress.status is Status.skipped and row.id not in history.settled_by_hand:
            named = set(progress.error.removeprefix("Dependency failed or skipped: ").split(", "))
            assert named <= lost, (row.id, history)


@pytest.mark.requirement("R1")
@holds_for(histories)
def test_in_auto_mode_no_question_is_ever_asked(history: History) -> None:
    assert not (history.state.policy.auto and history.seen(session_events.GateOpened)), history


@pytest.mark.requirement("R17")
@holds_for(histories)
def test_without_auto_mode_no_task_is_started_before_the_plan_is_approved(history: History) -> None:
    for step in history.steps:
        if not step.state.policy.auto and step.commands:
            assert not step.starts or step.state.gates.answers.get("plan") == "approve", history


@pytest.mark.requirement("R73")
@holds_for(onward)
def test_no_sprint_has_more_fix_rounds_than_allowed_nor_more_re_reviews_than_rounds(history: History) -> None:
    rounds = Counter(event.sprint for event in history.seen(session_events.RoundStarted))
    again = Counter(
        row.sprint
        for before, after in pairwise(entry.event for entry in history.entries)
        if isinstance(before, session_events.RoundStarted) and isinstance(after, session_events.TasksAdded)
        for row in after.tasks
        if row.role is Role.reviewer
    )

    assert all(count <= history.state.policy.rounds for count in rounds.values()), history
    assert again == rounds, history


@pytest.mark.requirement("R73")
@holds_for(onward)
def test_a_fix_round_answers_verdicts_of_its_own_sprint_only(history: History) -> None:
    for event in history.seen(session_events.RoundStarted, session_events.ConvergenceForced):
        assert {history.state.tasks.plan[task].sprint for task in event.raised_by} == {event.sprint}, history


@pytest.mark.requirement("R68", "R69", "R75")
@holds_for(untouched)
def test_every_bad_review_leads_to_a_round_or_a_recorded_convergence_and_no_good_one_does(history: History) -> None:
    state = history.state
    raised = {
        task
        for event in history.seen(session_events.RoundStarted, session_events.ConvergenceForced)
        for task in event.raised_by
    }
    for task, verdict in development(state).reviews.items():
        bad = critic.signal(verdict) is Signal.revision_needed and state.tasks.plan[task].pipeline is not Pipeline.patch
        if state.tasks.progress[task].status is Status.completed:
            assert (task in raised) == bad, (task, history)


@pytest.mark.requirement("R90")
@holds_for(untouched)
def test_all_failing_tests_lead_to_a_round_another_look_or_a_recorded_convergence(history: History) -> None:
    state = history.state
    raised = {
        task
        for event in history.seen(session_events.RoundStarted, session_events.ConvergenceForced)
        for task in event.raised_by
    }
    answered = raised | {event.task for event in history.seen(session_events.Reverified)}
    for task, verification in state.verifications.items():
        mendable = state.tasks.plan[task].pipeline is not Pipeline.patch
        if mendable and critic.fails(verification) and state.tasks.progress[task].status is Status.completed:
            assert task in answered, (task, history)


@holds_for(histories)
def test_no_agent_is_started_once_a_budget_is_used_up(history: History) -> None:
    for step in history.steps:
        rules, state = step.state.policy, step.state
        for task in step.starts:
            assert rules.budget_tokens is None or state.spending.total.tokens < rules.budget_tokens, history
            assert rules.day_budget_tokens is None or state.spending.today.tokens < rules.day_budget_tokens, history
            spent = state.tasks.progress[task].usage.tokens
            assert rules.task_budget_tokens is None or spent < rules.task_budget_tokens, (task, history)


@holds_for(histories, examples=600)
def test_no_attempt_is_ever_started_at_a_provider_that_is_paused(history: History) -> None:
    paused: dict[str, float] = {}
    agents: dict[TaskId, str] = {}
    rules = history.state.policy
    for entry in history.entries:
        match entry.event:
            case session_events.ProviderPaused(provider, until):
                paused[provider] = max(until, paused.get(provider, 0))
            case session_events.AttemptEnded(task, _, _, session_events.Limited(reset_at=reset_at)):
                provider = provider_of(rules, agents[task])
                paused[provider] = max(reset_at or entry.at + 1, paused.get(provider, 0))
            case session_events.AttemptStarted(task, _, agent):
                agents[task] = agent
                assert paused.get(provider_of(rules, agent), 0) <= entry.at, (task, history)


@holds_for(histories)
def test_an_attempt_that_ended_by_a_limit_counts_for_nothing_but_its_cost(history: History) -> None:
    state = replay(history.entries[:1])
    for entry in history.entries[1:]:
        assert state
        before, state = state, evolve(state, [entry])
        match entry.event:
            case session_events.AttemptEnded(task, _, _, session_events.Limited()):
                was, now = before.progress[task], state.tasks.progress[task]
                assert now.status is Status.pending, (task, history)
                assert (now.error, now.findings, now.replaced_agents) == (
                    was.error,
                    was.findings,
                    was.replaced_agents,
                ), history
                assert (development(state).rounds, state.warnings) == (before.rounds, before.warnings), history
                assert state.providers.unusable == before.unusable, history


@holds_for(histories)
def test_an_agent_is_started_only_for_a_role_that_it_has_or_takes_over(history: History) -> None:
    for step in history.steps:
        for command in step.commands:
            if isinstance(command, Start):
                role = step.state.tasks.plan[command.task].role
                assert command.agent in chain(step.state, role), (command, history)


@holds_for(histories)
def test_a_task_is_failed_by_a_trouble_only_when_no_other_agent_was_left(history: History) -> None:
    state = replay(history.entries[:1])
    for entry in history.entries[1:]:
        assert state
        before, state = state, evolve(state, [entry])
        match entry.event:
            case session_events.AttemptEnded(task, _, _, session_events.Failed(kind=kind)) if (
                kind and reaction(kind) in REPLACED
            ):
                left = others(before, task, before.progress[task].agent)
                assert state.tasks.progress[task].status is (Status.pending if left else Status.failed), (task, history)


@holds_for(histories)
def test_what_was_spent_is_the_same_however_it_is_added_up(history: History) -> None:
    state = history.state
    usages = [
        entry.event.outcome.usage for entry in history.entries if isinstance(entry.event, session_events.AttemptEnded)
    ]
    tasks = {**state.tasks.removed, **state.tasks.progress}
    for parts in (usages, [progress.usage for progress in tasks.values()], state.spending.by_agent.values()):
        assert sum(parts, Usage()).tokens == state.spending.total.tokens, history


@pytest.mark.requirement("R74", "R75")
@holds_for(onward)
def test_every_forced_convergence_is_warned_about_and_its_problems_are_noted(history: History) -> None:
    noted = {note.text for note in history.state.wisdom.notes if note.file == "issues"}
    for event in history.seen(session_events.ConvergenceForced):
        assert event.problems, history
        assert noted.issuperset(event.problems), history
        assert any(
            f"sprint-{event.sprint} " in text and event.problems[0] in text for text in history.state.warnings
        ), history


@pytest.mark.requirement("R37")
@holds_for(histories)
def test_no_task_id_is_ever_used_twice_unless_its_task_was_removed(history: History) -> None:
    used: set[TaskId] = set()
    for event in history.seen(session_events.TasksAdded, session_events.RollbackStarted):
        if isinstance(event, session_events.RollbackStarted):
            used.difference_update(event.removed)
        else:
            added = [row.id for row in event.tasks]
            assert used.isdisjoint(added), history
            used.update(added)


@holds_for(winding, examples=600)
def test_the_branch_holds_the_work_of_every_developer_who_is_done_and_of_nobody_else(history: History) -> None:
    state = history.state
    landed = Counter(task for task in state.branch.tip.split()[1:] if role_of(task) is Role.developer)
    done = [
        row.id
        for row, progress in state.tasks.rows()
        if row.role is Role.developer and progress.status is Status.completed and progress.commit
    ]
    refused = {task for task, conflict in state.conflicts.by_task.items() if not conflict.merged}

    assert landed == Counter(task for task in done if task not in refused), history


@holds_for(histories)
def test_no_sprint_begins_before_every_task_of_the_one_before_it_is_over(history: History) -> None:
    for step in history.steps:
        for command in step.commands:
            if isinstance(command, Record) and any(
                isinstance(event, session_events.SprintStarted) for event in command.events
            ):
                assert all(progress.status.is_final for progress in step.state.tasks.progress.values()), history


@pytest.mark.requirement("R45")
@holds_for(histories)
def test_waves_always_equal_one_plus_the_highest_among_the_dependencies(history: History) -> None:
    tasks = history.state.tasks.plan
    for row in tasks.values():
        assert row.wave == 1 + max((tasks[dep].wave for dep in row.deps), default=0), (row.id, history)


@holds_for(histories, examples=300)
def test_folding_the_whole_journal_again_gives_the_live_state(history: History) -> None:
    assert replay(history.entries) == history.state


@chosen(max_examples=300, derandomize=True, deadline=None, database=None)
@given(histories, st.lists(st.integers(1, 100), max_size=5))
def test_folding_in_any_chunks_gives_the_same_state(history: History, cuts: list[int]) -> None:
    places = [1, *sorted(cut for cut in cuts if cut < len(history.entries)), len(history.entries)]
    state = replay(history.entries[:1])
    for begin, end in pairwise(places):
        assert state
        state = evolve(state, history.entries[begin:end])

    assert state == history.state


@holds_for(histories, examples=100)
def test_every_decision_can_be_made_again_from_the_journal_and_no_state_was_changed_in_place(history: History) -> None:
    for step in history.steps[:: max(1, len(history.steps) // 10)]:
        again = replay([entry for entry in history.entries if entry.seq <= step.state.seq])
        assert again == step.state, history
        assert decide(again, step.now) == step.commands, history


@holds_for(histories)
def test_what_the_state_keeps_beside_the_table_agrees_with_the_table(history: History) -> None:
    for state in (*(step.state for step in history.steps), history.state):
        statuses = {task: progress.status for task, progress in state.tasks.progress.items()}
        pending = [row for row in state.tasks.plan.values() if statuses[row.id] is Status.pending]
        unmet = {row.id: sum(statuses[dep] is not Status.completed for dep in row.deps) for row in pending}
        waiting = Counter((dep, row.id) for row in state.tasks.plan.values() for dep in row.deps)
        open_ = Counter(row.wave for row in state.tasks.plan.values() if statuses[row.id] not in FINAL)

        assert set(state.tasks.ready) == {task for task, count in unmet.items() if not count}, history
        assert set(state.tasks.blocked_by_failure) == {
            row.id for row in pending if any(statuses[dep] in UNSUCCESSFUL for dep in row.deps)
        }
        assert {task: state.tasks.blockers[task] for task in unmet} == unmet, history
        assert Counter((dep, row) for dep, rows in state.tasks.dependants.items() for row in rows) == waiting, history
        assert +Counter(state.tasks.open_in_wave) == open_, history
        assert set(state.attempts.running) == {
            task for task, status in statuses.items() if status is Status.in_progress
        }
        assert {*state.attempts.landing, *state.conflicts.by_task.unresolved} == {
            task for task, status in statuses.items() if status is Status.landing
        }


@holds_for(histories, examples=200)
def test_every_event_survives_the_journal(history: History) -> None:
    for entry in history.entries:
        assert journal.decode(journal.encode(entry.event)) == entry.event
