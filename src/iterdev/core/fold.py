"""Makes the state from the journal: `evolve` takes the state so far and new entries, and returns the next state.

Folding is pure from the outside. Inside one call a map is copied before its first change and then changed in place,
so that folding a whole journal takes time in proportion to its length, and folding one event touches little.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import count
from typing import Generic, TypeVar, assert_never

import msgspec

from iterdev.core import (
    bus,
    checkpoints,
    completion,
    conflicts,
    critic,
    debt,
    dependencies,
    feedback,
    graph,
    locks,
    notices,
    providers,
    wisdom,
)
from iterdev.core import events as e
from iterdev.core.conflicts import Change, Conflict
from iterdev.core.plan import Task
from iterdev.core.results import Design, Review, Usage
from iterdev.core.state import Pause, Progress, Shared, State
from iterdev.core.verification import Verification
from iterdev.core.words import FINAL, LOST, Phase, Role, Status, Strategy, TaskId

Key = TypeVar("Key")
Value = TypeVar("Value")


def replay(entries: Sequence[e.Entry]) -> State | None:
    """The state that a whole journal folds to; an empty one folds to nothing."""
    return evolve(_beginning(entries[0]), entries) if entries else None


def evolve(state: State, entries: Sequence[e.Entry]) -> State:
    """The state after further entries."""
    if not entries:
        return state
    fold = _Fold(state)
    for entry in entries:
        fold.apply(entry)
    return fold.state(entries[-1])


def _beginning(entry: e.Entry) -> State:
    if not isinstance(entry.event, e.SessionStarted):
        raise TypeError(f"a journal begins with SessionStarted, not {type(entry.event).__name__}")
    session, policy = entry.event.session, entry.event.policy
    return State(
        session=session,
        policy=policy,
        seq=entry.seq,
        created_at=entry.at,
        updated_at=entry.at,
        tip=session.base,
        pipeline=session.pipeline,
    )


class _Map(Generic[Key, Value]):
    """A map of the state that a fold may change: its own copy, made when it is first asked for."""

    def __set_name__(self, _: type, name: str) -> None:
        self._name, self.field = name, name.removeprefix("_")

    def __get__(self, fold: "_Fold", _: type) -> dict[Key, Value]:
        own = fold.own(self)
        # An attribute of the object goes before one of its class that cannot be set.
        setattr(fold, self._name, own)
        return own


class _Fold:
    """One fold under way. A map is changed through an attribute here, and looked at in the state, which is free."""

    _order = _Map[TaskId, int]()
    _tasks = _Map[TaskId, Task]()
    _progress = _Map[TaskId, Progress]()
    _blockers = _Map[TaskId, int]()
    _dependants = _Map[TaskId, tuple[TaskId, ...]]()
    _ready = _Map[TaskId, None]()
    _doomed = _Map[TaskId, None]()
    _running = _Map[TaskId, e.AttemptStarted]()
    _landing = _Map[TaskId, None]()
    _work = _Map[TaskId, int]()
    _touched = _Map[str, tuple[Change, ...]]()
    _conflicts = _Map[TaskId, Conflict]()
    _colliding = _Map[TaskId, None]()
    _open_in_wave = _Map[int, int]()
    _gates = _Map[str, e.Gate]()
    _answers = _Map[str, str]()
    _judged = _Map[TaskId, None]()
    _unjudged = _Map[TaskId, None]()
    _decisions = _Map[TaskId, str]()
    _designs = _Map[TaskId, Design]()
    _reviews = _Map[TaskId, Review]()
    _verifications = _Map[TaskId, Verification]()
    _iterations = _Map[TaskId, int]()
    _shared = _Map[str, Shared]()
    _last_words = _Map[TaskId, str]()
    _aborted = _Map[TaskId, str]()
    _pauses = _Map[str, Pause]()
    _unusable = _Map[str, str]()
    _spent_by = _Map[str, Usage]()

    def __init__(self, state: State) -> None:
        self._state = state
        self._seq = state.seq
        self._warnings = list(state.warnings)
        self._messages = list(state.messages)
        self._notes = list(state.notes)

    def own(self, of: _Map[Key, Value]) -> dict[Key, Value]:
        copy: dict[Key, Value] = dict(getattr(self._state, of.field))
        self._set(**{of.field: copy})
        return copy

    def state(self, last: e.Entry) -> State:
        self._set(seq=last.seq, updated_at=last.at)
        self._set(warnings=tuple(self._warnings), messages=tuple(self._messages), notes=tuple(self._notes))
        return self._state

    def apply(self, entry: e.Entry) -> None:
        self._seq = entry.seq
        self._change(entry.event, entry.at)
        if message := bus.announcement(entry.event, self._state, entry.at):
            self._messages.append(message)

    def _set(self, **fields: object) -> None:
        self._state = msgspec.structs.replace(self._state, **fields)

    def _change(self, event: e.Event, at: float) -> None:
        match event:
            # First, because a long journal is made of them.
            case e.AttemptStarted():
                self._start(event, at)
            case e.AttemptEnded():
                self._end(event, at)
            case e.Landed():
                self._land(event, at)
            case e.LandingRefused() | e.ConflictResolved() | e.TaskFailed() | e.TaskSkipped():
                self._lose(event, at)
            case e.TasksAdded() | e.TasksReplanned() | e.TableEdited() | e.TasksReset():
                self._change_table(event)
            case e.RollbackStarted() | e.RollbackCompleted() | e.RollbackFailed() | e.SprintEnded() | e.SprintStarted():
                self._change_course(event)
            case e.RoundStarted() | e.Reverified() | e.ReviewPassed() | e.ConvergenceForced() | e.RoundDecided():
                self._change_rounds(event, at)
            case e.PipelineChosen() | e.GateOpened() | e.GateAnswered():
                self._change_gates(event, at)
            case e.WaveStarted() | e.WaveMerged():
                self._change_wave(event, at)
            case e.ProviderPaused() | e.DaySpent():
                self._change_outside(event)
            case e.SessionStarted() | e.PolicyChanged() | e.Warned() | e.Paused() | e.Accepted():
                self._change_session(event, at)
            case e.EngineStarted() | e.Finished():
                self._change_session(event, at)
            case e.MessageSent():
                self._listen(event, at)
            case _:
                self._change_protocols(event, at)

    def _change_wave(self, event: e.WaveEvent, at: float) -> None:
        match event:
            case e.WaveStarted(wave):
                self._set(wave=wave)
                self._start_clock(at)
            case e.WaveMerged():
                self._set(wave=0)

    def _change_session(self, event: e.SessionEvent, at: float) -> None:
        match event:
            case e.SessionStarted():
                pass
            case e.PolicyChanged(policy):
                self._set(policy=policy)
            case e.Warned(text):
                self._warnings.append(text)
            case e.EngineStarted(_, tip):
                self._set(phase=Phase.active, why="", tip=tip, completion=completion.Completion())
                self._unusable.clear()
                self._start_clock(at)
            case e.Paused(why):
                self._set(phase=Phase.paused, why=why)
            case e.Finished(why):
                self._set(phase=Phase.completed, why=why, completion=completion.Completion(finished_at=at))
            case e.Accepted(_, commit):
                self._set(accepted=commit)
            case _:
                assert_never(event)

    def _change_outside(self, event: e.OutsideEvent) -> None:
        match event:
            case e.ProviderPaused(provider, until, why):
                self._pause(provider, Pause(until=until, why=why))
            case e.DaySpent(_, usage):
                self._set(today=usage)

    def _listen(self, message: e.MessageSent, at: float) -> None:
        if message.task and message.task in self._state.running:
            self._last_words[message.task] = message.summary
        if message.kind == "state_update" and message.data:
            before = self._state.shared.get(message.sender)
            data = {**(before.data if before else {}), **message.data}
            self._shared[message.sender] = Shared(at=at, data=data)

    def _complete_session(self, event: completion.CompletionEvent, at: float) -> None:
        archived = isinstance(event, completion.Archived)
        self._set(
            phase=Phase.archived if archived else Phase.paused,
            why="" if archived else completion.KEPT,
            completion=completion.evolve(self._state.completion, event, at),
        )

    def _change_course(self, event: e.SprintEvent | e.RollbackEvent) -> None:
        match event:
            case e.SprintEnded(sprint, record):
                self._set(sprints={**self._state.sprints, sprint: record})
            case e.SprintStarted(sprint):
                self._set(sprint=sprint)
            case e.RollbackStarted():
                self._go_back(event)
            case e.RollbackCompleted() | e.RollbackFailed():
                self._set(rewind="")

    def _change_gates(self, event: e.GateEvent, at: float) -> None:
        match event:
            case e.PipelineChosen(pipeline):
                self._set(pipeline=pipeline)
            case e.GateOpened(gate):
                self._gates[gate.id] = gate
                self._answers.pop(gate.id, None)
            case e.GateAnswered(gate, choice):
                self._gates.pop(gate, None)
                self._answers[gate] = choice
                # The time that a person takes is not taken from the wave.
                self._set(wave_started_at=at)
            case _:
                assert_never(event)

    def _change_table(self, event: e.TableEvent) -> None:
        match event:
            case e.TasksAdded(tasks):
                self._add(tasks)
            case e.TasksReplanned(tasks):
                for task in tasks:
                    self._tasks[task.id] = task
                self._reindex()
            case e.TableEdited(rows):
                self._edit(rows)
            case e.TasksReset(tasks):
                self._reopen_sprint()
                for name in tasks:
                    self._judged.pop(name, None)
                    self._colliding.pop(name, None)
                self._start_over(tasks)

    def _go_back(self, event: e.RollbackStarted) -> None:
        """Forgets what came of tasks since; what they cost and where their work is kept stays known."""
        again = [row.id for row in event.rows]
        lost = {*again, *event.removed}
        for task in event.removed:
            for owned in (self._order, self._tasks, self._progress):
                owned.pop(task, None)
        for row in event.rows:
            self._tasks[row.id] = row
        self._forget(lost)
        self._start_over(again)
        self._notes = [note for note in self._notes if note.task not in lost]
        self._set(
            tip=event.tip,
            rewind=event.snapshot,
            sprint=event.sprint,
            sprints={number: record for number, record in self._state.sprints.items() if number < event.sprint},
            rounds=event.rounds,
            forced=tuple(number for number in self._state.forced if number < event.sprint),
            phase=Phase.paused,
            why=f"rolled back to before {event.target}",
        )
        self._gates.clear()
        self._answers.clear()
        self._answers.update(event.answers)

    def _forget(self, tasks: Collection[TaskId]) -> None:
        owned = (
            self._judged, self._decisions, self._designs, self._reviews, self._verifications, self._iterations,
            self._conflicts, self._colliding, self._landing, self._running, self._work,
        )  # fmt: skip
        for task in tasks:
            for one in owned:
                one.pop(task, None)
        for file, changes in list(self._touched.items()):
            self._touched[file] = tuple(change for change in changes if change.task not in tasks)

    def _start_over(self, tasks: Iterable[TaskId]) -> None:
        for name in tasks:
            before = self._progress[name]
            kept = (*before.unlanded, before.commit) if before.commit else before.unlanded
            self._progress[name] = Progress(
                requests=before.requests, number=before.number, usage=before.usage, unlanded=kept
            )
        self._reindex()
        self._set(wave=0)

    def _reopen_sprint(self) -> None:
        """What was found at the end of the sprint no longer holds; it will end again."""
        current = self._state.sprint
        self._set(sprints={sprint: record for sprint, record in self._state.sprints.items() if sprint != current})

    def _start(self, event: e.AttemptStarted, at: float) -> None:
        self._ready.pop(event.task, None)
        self._running[event.task] = event
        self._last_words.pop(event.task, None)
        if self._state.tasks[event.task].role is Role.developer:
            self._work[event.task] = self._seq
        self._update(
            event.task,
            status=Status.in_progress,
            agent=event.agent,
            base=event.base,
            started_at=at,
            ended_at=None,
        )

    def _end(self, event: e.AttemptEnded, at: float) -> None:
        self._running.pop(event.task, None)
        before = self._progress[event.task]
        self._update(
            event.task,
            requests=before.requests + event.requests,
            number=_last_number(event),
        )
        if event.denied:
            self._update(event.task, denied=tuple(dict.fromkeys((*before.denied, *event.denied))))
        self._free(event.task, at)
        self._look_at_dependencies(event)
        self._conclude(event.task, event.outcome, at)
        if event.task not in self._state.landing:
            self._work.pop(event.task, None)

    def _land(self, event: e.Landed, at: float) -> None:
        self._landing.pop(event.task, None)
        self._set(tip=event.tip)
        conflict = self._touch(event.task) if self._state.tasks[event.task].role is Role.developer else None
        if conflict and conflict.others:
            self._collide(event.task, conflict)
        else:
            self._complete(event.task, at)

    def _lose(self, event: e.LandingRefused | e.ConflictResolved | e.TaskFailed | e.TaskSkipped, at: float) -> None:
        match event:
            case e.TaskFailed(task, error):
                self._close(task, Status.failed, at, error=error)
            case e.TaskSkipped(task, error):
                self._close(task, Status.skipped, at, error=error)
            case e.LandingRefused(task, files):
                self._landing.pop(task, None)
                self._refuse(task, files, at)
            case e.ConflictResolved(task=task, strategy=strategy, fix=fix):
                self._resolve(task, strategy, fix, at)

    def _touch(self, task: TaskId) -> Conflict:
        """What others changed meanwhile; what this work changed is noted as long as somebody can collide with it."""
        changed = self._progress[task].changed
        files, others = conflicts.overlap(changed, self._work.pop(task), self._state.touched)
        if self._work:
            oldest = min(self._work.values())
            for file in changed:
                recent = conflicts.since(oldest, self._touched.get(file, ()))
                self._touched[file] = (*recent, Change(task, self._seq))
        else:
            self._touched.clear()
        return Conflict(files=files, others=others, merged=True)

    def _refuse(self, task: TaskId, files: tuple[str, ...], at: float) -> None:
        """A developer's work is kept and brought in by a further task; nobody else may write what others wrote."""
        if self._state.tasks[task].role is Role.developer:
            _, others = conflicts.overlap(files, self._work.pop(task), self._state.touched)
            self._collide(task, Conflict(files=files, others=others, merged=False))
        else:
            self._close(task, Status.failed, at, error=self._collision(task, files))

    def _collide(self, task: TaskId, conflict: Conflict) -> None:
        self._conflicts[task] = conflict
        self._colliding[task] = None

    def _resolve(self, task: TaskId, strategy: Strategy, fix: TaskId | None, at: float) -> None:
        conflict = msgspec.structs.replace(self._conflicts[task], strategy=strategy, resolved_by=fix)
        self._conflicts[task] = conflict
        self._colliding.pop(task, None)
        if strategy is Strategy.abort and not conflict.merged:
            self._close(task, Status.failed, at, error=self._collision(task, conflict.files))
        else:
            self._complete(task, at)

    def _collision(self, task: TaskId, files: Iterable[str]) -> str:
        kept = self._progress[task].commit
        return f"conflicts with work that landed before it in {', '.join(files)}; the change is kept as {kept}"

    def _change_protocols(self, event: e.ProtocolEvent, at: float) -> None:
        state = self._state
        if isinstance(event, locks.LockEvent):
            self._set(locks=locks.evolve(state.locks, event, at))
            self._follow(event)
        elif isinstance(event, checkpoints.CheckpointEvent):
            self._set(checkpoints=checkpoints.evolve(state.checkpoints, event, at))
        elif isinstance(event, completion.CompletionEvent):
            self._complete_session(event, at)
        elif isinstance(event, wisdom.WisdomEvent):
            self._set(heritage=wisdom.evolve(state.heritage, event))
        elif isinstance(event, dependencies.DependencyEvent):
            self._change_dependencies(event)
        elif isinstance(event, feedback.FeedbackEvent):
            self._set(feedback=feedback.evolve(state.feedback, event))
        else:
            self._set(debt=debt.evolve(state.debt, event))
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

    def _tell(self, event: e.ProtocolEvent, at: float) -> None:
        if message := notices.notice(event, at):
            self._messages.append(message)

    def _free(self, task: TaskId, at: float) -> None:
        """The locks of a task that is over are free at once."""
        before = self._state.locks
        if before.held or before.wanted:
            for released in locks.released_by(before, task):
                self._tell(released, at)
            self._set(locks=locks.ended(before, task))

    def _change_rounds(self, event: e.RoundEvent, at: float) -> None:
        state = self._state
        match event:
            case e.RoundStarted(sprint=sprint, number=number, raised_by=raised_by):
                self._judge(*raised_by)
                self._set(rounds={**state.rounds, sprint: number})
            case e.Reverified(task):
                self._judge(task)
            case e.ReviewPassed(task, grade):
                self._judge(task)
                if grade == "medium":
                    self._warnings.append(f"{task} passed with findings of medium or high severity")
            case e.ConvergenceForced(sprint=sprint, raised_by=raised_by, problems=problems, why=why):
                self._judge(*raised_by)
                self._set(forced=(*state.forced, sprint))
                self._warnings.append(
                    f"convergence of sprint-{sprint} was forced after {state.rounds.get(sprint, 0)} fix rounds"
                    f"{f' ({why})' if why else ''}; still open: {'; '.join(problems)}"
                )
                self._note("issues", problems, raised_by[-1], self._state.tip, at)
            case e.RoundDecided(task=task, decision=decision, number=number):
                self._decisions[task] = decision
                self._ready.pop(task, None)
                self._close(task, Status.completed, at, findings=f"GC decision: {decision} (round {number})")

    def _conclude(self, task: TaskId, outcome: e.Outcome, at: float) -> None:
        why = self._aborted.pop(task) if task in self._state.aborted else ""
        if outcome.commit and not isinstance(outcome, e.Done):
            self._update(task, unlanded=(*self._progress[task].unlanded, outcome.commit))
        self._spend(task, outcome.usage)
        match outcome:
            case e.Done():
                self._hear_provider(task, at)
                self._record(task, outcome, at)
            case e.Limited() | e.Interrupted() if why:
                self._close(task, Status.failed, at, error=why)
            case e.Failed():
                self._fail(task, outcome, at)
            case e.Limited():
                provider = providers.provider_of(self._state.policy, self._progress[task].agent)
                self._pause(provider, providers.pause(self._state.pauses.get(provider), outcome, at))
                self._again(task)
            case e.Interrupted() | e.Unmet():
                self._again(task)

    def _fail(self, task: TaskId, failed: e.Failed, at: float) -> None:
        """Another agent takes over, if the trouble is one that it need not have and there is one left to try."""
        change = providers.change_of_agent(self._state, task, failed)
        if change is None:
            if failed.kind is None:
                self._hear_provider(task, at)
            self._close(task, Status.failed, at, error=failed.error)
            return
        self._warnings.append(f"{task}: {failed.error}; {change.successor} takes over")
        if change.for_every_task:
            self._unusable[change.agent] = failed.error
        self._update(task, given_up=(*self._progress[task].given_up, change.agent))
        self._again(task)

    def _spend(self, task: TaskId, usage: Usage) -> None:
        if usage != Usage():
            before = self._progress[task]
            self._update(task, usage=before.usage + usage)
            self._spent_by[before.agent] = self._state.spent_by.get(before.agent, Usage()) + usage
            self._set(spent=self._state.spent + usage)

    def _pause(self, provider: str, pause: Pause) -> None:
        self._pauses[provider] = pause
        # The time that a provider takes is not taken from the wave.
        self._set(wave_started_at=max(self._state.wave_started_at, pause.until))

    def _start_clock(self, at: float) -> None:
        self._set(wave_started_at=max([at, *(pause.until for pause in self._state.pauses.values())]))

    def _hear_provider(self, task: TaskId, at: float) -> None:
        """A provider that has answered since its pause is not asked for patience any longer."""
        provider = providers.provider_of(self._state.policy, self._progress[task].agent)
        known = self._state.pauses.get(provider)
        if known and known.until <= at:
            del self._pauses[provider]

    def _look_at_dependencies(self, ended: e.AttemptEnded) -> None:
        task, outcome, part = ended.task, ended.outcome, self._state.dependencies
        declared = outcome.dependencies if isinstance(outcome, e.Done) else ()
        if ended.checked or declared:
            looked = dependencies.look(part, task, ended.checked, unmet=isinstance(outcome, e.Unmet))
            self._set(dependencies=dependencies.declare(looked, task, declared))

    def _change_dependencies(self, event: dependencies.DependencyEvent) -> None:
        self._set(dependencies=dependencies.evolve(self._state.dependencies, event))
        if isinstance(event, dependencies.DependenciesOverridden):
            problems = "; ".join(problem.words for problem in event.problems)
            self._warnings.append(f"{event.task} goes on although {problems}")

    def _record(self, task: TaskId, done: e.Done, at: float) -> None:
        """Keeps what an agent handed in; a commit still has to land before the task is completed."""
        self._update(
            task,
            status=Status.landing if done.commit else self._progress[task].status,
            findings=done.findings,
            commit=done.commit,
            changed=done.changed,
            ended_at=at,
            error="",
        )
        self._keep_documents(task, done)
        for file in wisdom.FILES:
            if texts := getattr(done.wisdom, file):
                self._note(file, texts, task, done.commit or self._progress[task].base, at)
        for note in done.notes:
            self._warnings.append(note)
        if done.tech_debt:
            self._take_up_debt(task, done, at)
        if done.commit:
            self._landing[task] = None
        else:
            self._complete(task, at)

    def _take_up_debt(self, task: TaskId, done: e.Done, at: float) -> None:
        sprint = self._state.tasks[task].sprint
        for found in debt.reported(self._state.debt, done.tech_debt, task=task, sprint=sprint, at=at):
            self._change_protocols(found, at)

    def _keep_documents(self, task: TaskId, done: e.Done) -> None:
        if done.design:
            self._designs[task] = done.design
        if done.review:
            self._reviews[task] = done.review
            self._update(task, score=critic.score(done.review.scores), signal=critic.signal(done.review))
        if done.verification:
            self._verifications[task] = done.verification
            self._iterations[task] = done.iterations
        if done.baseline:
            self._set(baseline=done.baseline)

    def _complete(self, task: TaskId, at: float) -> None:
        error = critic.verify_error(self._state.tasks[task], self._state.verifications.get(task))
        self._close(task, Status.failed if error else Status.completed, at, error=error)

    def _close(self, task: TaskId, status: Status, at: float, **fields: object) -> None:
        """A task reaches its final status, and its dependants learn of it."""
        was = self._progress[task]
        if was.status in FINAL:
            return
        self._ready.pop(task, None)
        self._doomed.pop(task, None)
        self._free(task, at)
        self._update(task, status=status, ended_at=was.ended_at or at, **fields)
        self._open_in_wave[self._state.tasks[task].wave] -= 1
        self._await_judgement(task)
        for other in self._state.dependants.get(task, ()):
            self._hear(other, status)

    def _await_judgement(self, task: TaskId) -> None:
        """A completed review or verification is put before the critic, once."""
        state = self._state
        progress = state.progress[task]
        has_verdict = progress.signal is not None or task in state.verifications
        if has_verdict and progress.status is Status.completed and task not in state.judged:
            self._unjudged[task] = None

    def _hear(self, task: TaskId, status: Status) -> None:
        if status is Status.completed:
            self._blockers[task] -= 1
            if not self._blockers[task] and self._progress[task].status is Status.pending:
                self._ready[task] = None
        elif self._progress[task].status is Status.pending:
            self._doomed[task] = None

    def _again(self, task: TaskId) -> None:
        self._update(task, status=Status.pending)
        self._queue(self._state.tasks[task])

    def _update(self, task: TaskId, **fields: object) -> None:
        self._progress[task] = msgspec.structs.replace(self._progress[task], **fields)

    def _judge(self, *tasks: TaskId) -> None:
        for task in tasks:
            self._judged[task] = None
            self._unjudged.pop(task, None)

    def _note(self, file: str, texts: Iterable[str], task: str, commit: str, at: float) -> None:
        session = self._state.session.id
        notes = (wisdom.note(file, text, session=session, task=task, commit=commit, at=at) for text in texts)
        self._notes.extend(notes)

    def _add(self, tasks: Collection[Task]) -> None:
        added = {task.id: task for task in tasks}
        self._order.update(zip(added, count(len(self._order))))
        self._tasks.update(added)
        self._progress.update(dict.fromkeys(added, Progress()))
        self._index(tasks)

    def _index(self, tasks: Collection[Task]) -> None:
        waiting: dict[TaskId, list[TaskId]] = {}
        for task in tasks:
            is_open = self._progress[task.id].status not in FINAL
            self._open_in_wave[task.wave] = self._open_in_wave.get(task.wave, 0) + is_open
            self._queue(task)
            for dep in task.deps:
                waiting.setdefault(dep, []).append(task.id)
        for dep, others in waiting.items():
            self._dependants[dep] = (*self._dependants.get(dep, ()), *others)

    def _queue(self, task: Task) -> None:
        """A pending task is ready, or doomed, or waits."""
        awaited = [self._progress[dep].status for dep in task.deps]
        self._blockers[task.id] = len(awaited) - awaited.count(Status.completed)
        if self._progress[task.id].status is not Status.pending:
            return
        if not self._blockers[task.id]:
            self._ready[task.id] = None
        elif not LOST.isdisjoint(awaited):
            self._doomed[task.id] = None

    def _edit(self, rows: Iterable[e.RowEdit]) -> None:
        for row in rows:
            self._order.setdefault(row.task.id, len(self._order))
            self._tasks[row.task.id] = row.task
            before = self._progress.get(row.task.id, Progress())
            under_way = before.status in {Status.in_progress, Status.landing}
            if row.status is Status.pending:
                self._judged.pop(row.task.id, None)
            self._progress[row.task.id] = msgspec.structs.replace(
                before,
                status=before.status if under_way else row.status,
                findings=row.findings,
                score=row.score,
                signal=row.signal,
                error=row.error,
            )
        self._reindex()
        self._set(wave=0)

    def _reindex(self) -> None:
        """Makes every derived map again, after a change that may have touched any row."""
        maps = (self._blockers, self._dependants, self._ready, self._doomed, self._open_in_wave, self._unjudged)
        for derived in maps:
            derived.clear()
        depth = graph.depths({task.id: task.deps for task in self._tasks.values()})
        for name, task in self._tasks.items():
            self._tasks[name] = msgspec.structs.replace(task, wave=depth[name])
        self._index(self._tasks.values())
        for name in self._tasks:
            if not self._is_answered(name):
                self._await_judgement(name)

    def _is_answered(self, task: TaskId) -> bool:
        """Whether a fix of a later round already waits for this verdict, as in a table that was read back."""
        mine = self._tasks[task].round
        others = (self._tasks[other] for other in self._dependants.get(task, ()))
        return any(other.role is Role.developer and other.round > mine for other in others)


def _last_number(ended: e.AttemptEnded) -> int:
    """The first request has the attempt's own number; an attempt that was put off before anything began has none."""
    return ended.number - 1 if isinstance(ended.outcome, e.Unmet) else ended.number + max(ended.requests - 1, 0)
