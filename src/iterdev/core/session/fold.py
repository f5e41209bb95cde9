"""Makes the state from the journal: `evolve` takes the state so far and new entries, and returns the next state.

Folding is pure from the outside. Inside one call a map is copied before its first change and then changed in place,
so that folding a whole journal takes time in proportion to its length, and folding one event touches little.
"""

from collections.abc import Collection, Sequence
from typing import assert_never

from iterdev.core.collaboration import checkpoints, external_packages, feedback, locks, tech_debt, wisdom
from iterdev.core.session import announcements, archive, events
from iterdev.core.session.bus import Heard
from iterdev.core.session.state import Pause, State
from iterdev.core.types import Phase, Status, TaskId
from iterdev.teams.development import sprints


def replay(entries: Sequence[events.Entry]) -> State | None:
    """The state that a whole journal folds to; an empty one folds to nothing."""
    return evolve(_beginning(entries[0]), entries) if entries else None


def evolve(state: State, entries: Sequence[events.Entry]) -> State:
    """The state after further entries."""
    if not entries:
        return state
    fold = _Fold(state)
    for entry in entries:
        fold.apply(entry)
    return fold.state(entries[-1])


def _beginning(entry: events.Entry) -> State:
    if not isinstance(entry.event, events.SessionStarted):
        raise TypeError(f"a journal begins with SessionStarted, not {type(entry.event).__name__}")
    session, policy = entry.event.session, entry.event.policy
    return State(
        session=session,
        policy=policy,
        seq=entry.seq,
        created_at=entry.at,
        updated_at=entry.at,
        last=entry,
        tip=session.base,
        pipeline=session.pipeline,
    )


class _Fold(Heard):
    """One fold under way."""

    def state(self, last: events.Entry) -> State:
        self._set(seq=last.seq, updated_at=last.at)
        self._set(
            last=self._last, warnings=tuple(self._warnings), messages=tuple(self._messages), notes=tuple(self._notes)
        )
        return self._state

    def apply(self, entry: events.Entry) -> None:
        self._seq = entry.seq
        if not isinstance(entry.event, events.EngineStarted | events.Paused):
            self._last = entry
        self._change(entry.event, entry.at)
        if message := announcements.announcement(entry.event, self._state, entry.at):
            self._say(message)

    def _change(self, event: events.Event, at: float) -> None:
        match event:
            # First, because a long journal is made of them.
            case events.AttemptStarted():
                self._start(event, at)
            case events.AttemptEnded():
                self._end(event, at)
            case events.Landed():
                self._land(event, at)
            case (
                events.LandingRefused()
                | events.ConflictResolved()
                | events.TaskFailed()
                | events.TaskSkipped()
                | events.TaskReported()
                | events.NothingLeft()
            ):
                self._settle(event, at)
            case (
                events.TasksAdded()
                | events.TasksReplanned()
                | events.TableEdited()
                | events.TasksReset()
                | events.DesignRestored()
            ):
                self._change_table(event)
            case (
                events.RollbackStarted()
                | events.RollbackCompleted()
                | events.RollbackFailed()
                | events.SprintEnded()
                | events.SprintStarted()
            ):
                self._change_course(event)
            case (
                events.RoundStarted()
                | events.Reverified()
                | events.ReviewPassed()
                | events.ConvergenceForced()
                | events.RoundDecided()
            ):
                self._change_rounds(event, at)
            case events.PipelineChosen() | events.GateOpened() | events.GateAnswered():
                self._change_gates(event, at)
            case events.WaveStarted() | events.WaveMerged():
                self._change_wave(event, at)
            case events.ProviderPaused() | events.DaySpent():
                self._change_outside(event)
            case (
                events.SessionStarted() | events.PolicyChanged() | events.Warned() | events.Paused() | events.Accepted()
            ):
                self._change_session(event, at)
            case events.EngineStarted() | events.Finished() | events.WorkerStarted() | events.WorkerEnded():
                self._change_session(event, at)
            case events.MessageSent() | events.MessageDeleted() | events.MessagesCleared():
                self._change_bus(event, at)
            case _:
                self._change_protocols(event, at)

    def _change_wave(self, event: events.WaveEvent, at: float) -> None:
        match event:
            case events.WaveStarted(wave):
                self._set(wave=wave)
                self._start_clock(at)
            case events.WaveMerged():
                self._set(wave=0)

    def _change_session(self, event: events.SessionEvent, at: float) -> None:
        match event:
            case events.SessionStarted():
                pass
            case events.PolicyChanged(policy):
                self._set(policy=policy)
            case events.Warned(text):
                self._warnings.append(text)
            case events.EngineStarted(_, tip):
                self._set(phase=Phase.active, why="", completion=archive.Completion(), worker=None)
                if not self._state.landing:
                    # Otherwise the work that is about to land may be there already, and has not been noted.
                    self._set(tip=tip)
                self._unusable.clear()
                self._start_clock(at)
            case events.WorkerStarted(role):
                self._set(worker=role)
            case events.WorkerEnded():
                self._set(worker=None)
            case events.Paused(why):
                self._set(phase=Phase.paused, why=why)
            case events.Finished(why):
                self._set(phase=Phase.completed, why=why, completion=archive.Completion(finished_at=at))
            case events.Accepted(_, commit):
                self._set(accepted=commit)
            case _:
                assert_never(event)

    def _change_outside(self, event: events.OutsideEvent) -> None:
        match event:
            case events.ProviderPaused(provider, until, why):
                self._pause(provider, Pause(until=until, why=why))
            case events.DaySpent(_, usage):
                self._set(today=usage)

    def _complete_session(self, event: archive.CompletionEvent, at: float) -> None:
        archived = isinstance(event, archive.Archived)
        gate = sprints.gate_of(self._state.sprint)
        if isinstance(event, archive.Reopened) and self._state.answers.get(gate) == sprints.STOP:
            # Whoever takes it up again wants to be asked again.
            self._answers.pop(gate)
        self._set(
            phase=Phase.archived if archived else Phase.paused,
            why="" if archived else archive.KEPT,
            completion=archive.evolve(self._state.completion, event, at),
        )

    def _change_course(self, event: events.SprintEvent | events.RollbackEvent) -> None:
        match event:
            case events.SprintEnded(sprint, record):
                self._set(sprints={**self._state.sprints, sprint: record})
            case events.SprintStarted(sprint):
                self._set(sprint=sprint)
            case events.RollbackStarted():
                self._go_back(event)
            case events.RollbackCompleted():
                self._set(rewind="")
            case events.RollbackFailed():
                pass

    def _change_gates(self, event: events.GateEvent, at: float) -> None:
        match event:
            case events.PipelineChosen(pipeline):
                self._set(pipeline=pipeline)
            case events.GateOpened(gate):
                self._gates[gate.id] = gate
                self._answers.pop(gate.id, None)
            case events.GateAnswered(gate, choice):
                self._gates.pop(gate, None)
                self._disputes.pop(gate, None)
                self._answers[gate] = choice
                if not self._gates and self._state.phase is Phase.paused:
                    self._set(why="")
                # The time that a person takes is not taken from the wave.
                self._set(wave_started_at=at)
            case _:
                assert_never(event)

    def _change_table(self, event: events.TableEvent) -> None:
        match event:
            case events.TasksAdded(tasks):
                self._add(tasks)
            case events.TasksReplanned(tasks):
                for task in tasks:
                    self._tasks[task.id] = task
                self._reindex()
            case events.TableEdited(rows):
                self._edit(rows)
            case events.DesignRestored(task, design):
                self._designs[task] = design
            case events.TasksReset(tasks):
                self._reopen_sprint()
                for name in tasks:
                    self._judged.pop(name, None)
                    self._colliding.pop(name, None)
                self._start_over(tasks)

    def _go_back(self, event: events.RollbackStarted) -> None:
        """Forgets what came of tasks since; what they cost and where their work is kept stays known."""
        again = [row.id for row in event.rows]
        lost = {*again, *event.removed}
        undone = (self._progress[task].usage for task in event.removed if task in self._progress)
        self._set(undone=sum(undone, self._state.undone), accepted="")
        for task in event.removed:
            self._removed[task] = self._progress[task]
            for owned in (self._order, self._tasks, self._progress):
                owned.pop(task, None)
        for row in event.rows:
            self._tasks[row.id] = row
        self._forget(lost)
        for task in event.unjudged:
            self._judged.pop(task, None)
        self._start_over(again)
        self._notes = [note for note in self._notes if note.task not in lost]
        self._set(
            checkpoints={task: kept for task, kept in self._state.checkpoints.items() if task not in lost},
            debt=tech_debt.taken_back(self._state.debt, lost),
            feedback=feedback.let_go(self._state.feedback, lost),
            tip=event.tip,
            rewind=event.snapshot,
            sprint=event.sprint,
            sprints={number: record for number, record in self._state.sprints.items() if number < event.sprint},
            rounds=event.rounds,
            forced=tuple(number for number in self._state.forced if number < event.sprint or number in event.forced),
            phase=Phase.paused,
            why=f"rolled back to before {event.target}",
        )
        self._gates.clear()
        self._disputes.clear()
        self._answers.clear()
        self._answers.update(event.answers)

    def _forget(self, tasks: Collection[TaskId]) -> None:
        owned = (
            self._judged, self._decisions, self._designs, self._revised, self._reviews, self._verifications,
            self._iterations, self._conflicts, self._colliding, self._landing, self._running, self._work,
        )  # fmt: skip
        for task in tasks:
            for one in owned:
                one.pop(task, None)
        for file, changes in list(self._touched.items()):
            self._touched[file] = tuple(change for change in changes if change.task not in tasks)

    def _change_protocols(self, event: events.ProtocolEvent, at: float) -> None:
        state = self._state
        if isinstance(event, locks.LockEvent):
            self._set(locks=locks.evolve(state.locks, event, at))
            self._follow(event)
        elif isinstance(event, checkpoints.CheckpointEvent):
            self._set(checkpoints=checkpoints.evolve(state.checkpoints, event, at))
        elif isinstance(event, archive.CompletionEvent):
            self._complete_session(event, at)
        elif isinstance(event, wisdom.WisdomEvent):
            self._set(heritage=wisdom.evolve(state.heritage, event))
        elif isinstance(event, external_packages.DependencyEvent):
            self._change_dependencies(event)
        elif isinstance(event, feedback.FeedbackEvent):
            self._set(feedback=feedback.evolve(state.feedback, event))
        else:
            self._set(debt=tech_debt.evolve(state.debt, event))
        self._tell(event, at)

    def _follow(self, event: locks.LockEvent) -> None:
        """What a lock means for the tasks and the user."""
        match event:
            case locks.LockExpired(resource=resource, task=task):
                self._warnings.append(f'the lock of {task} on "{resource}" was taken away, because it was too old')
            case locks.DeadlockBroken(task=task, others=others) if task in self._state.running:
                self._aborted[task] = f"aborted: it and {', '.join(others)} waited for each other's locks"
            case _:
                pass

    def _change_rounds(self, event: events.RoundEvent, at: float) -> None:
        state = self._state
        match event:
            case events.RoundStarted(sprint=sprint, number=number, raised_by=raised_by):
                self._judge(*raised_by)
                self._set(rounds={**state.rounds, sprint: number})
            case events.Reverified(task):
                self._judge(task)
            case events.ReviewPassed(task, grade):
                self._judge(task)
                if grade == "medium":
                    self._warnings.append(f"{task} passed with findings of medium or high severity")
            case events.ConvergenceForced(sprint=sprint, raised_by=raised_by, problems=problems, why=why):
                self._judge(*raised_by)
                self._set(forced=(*state.forced, sprint))
                self._warnings.append(
                    f"convergence of sprint-{sprint} was forced after {state.rounds.get(sprint, 0)} fix rounds"
                    f"{f' ({why})' if why else ''}; still open: {'; '.join(problems)}"
                )
                self._note("issues", problems, raised_by[-1], self._state.tip, at)
            case events.RoundDecided(task=task, decision=decision, number=number):
                self._decisions[task] = decision
                self._ready.pop(task, None)
                self._close(task, Status.completed, at, findings=f"GC decision: {decision} (round {number})")

    def _change_dependencies(self, event: external_packages.DependencyEvent) -> None:
        self._set(dependencies=external_packages.evolve(self._state.dependencies, event))
        if isinstance(event, external_packages.DependenciesOverridden):
            problems = "; ".join(problem.words for problem in event.problems)
            self._warnings.append(f"{event.task} goes on although {problems}")
