"""What becomes of the state when attempts start and end, and their work lands or does not."""

from collections.abc import Iterable

import msgspec

from iterdev.core.collaboration import external_packages, feedback, tech_debt, wisdom
from iterdev.core.limits import providers
from iterdev.core.results import Usage
from iterdev.core.session import conflicts, events
from iterdev.core.session.conflicts import Change, Conflict
from iterdev.core.session.draft import Draft
from iterdev.core.session.state import Pause
from iterdev.core.types import Role, Status, Strategy, TaskId
from iterdev.teams.development import critic


class Attempted(Draft):
    """A draft that takes in what was attempted."""

    def _start(self, event: events.AttemptStarted, at: float) -> None:
        self._ready.pop(event.task, None)
        self._running[event.task] = event
        self._last_words.pop(event.task, None)
        if event.task in self._state.conflicts:
            del self._conflicts[event.task]
        if self._state.tasks[event.task].role is Role.developer:
            self._work[event.task] = self._seq
        self._update(
            event.task,
            status=Status.in_progress,
            attempt=event.number,
            agent=event.agent,
            base=event.base,
            started_at=at,
            ended_at=None,
        )

    def _end(self, event: events.AttemptEnded, at: float) -> None:
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

    def _land(self, event: events.Landed, at: float) -> None:
        self._landing.pop(event.task, None)
        self._set(tip=event.tip, accepted="")
        conflict = self._touch(event.task) if self._state.tasks[event.task].role is Role.developer else None
        if conflict and conflict.others:
            self._collide(event.task, conflict)
        else:
            self._complete(event.task, at)

    def _complete(self, task: TaskId, at: float) -> None:
        row = self._state.tasks[task]
        if error := critic.verify_error(row, self._state.verifications.get(task)):
            self._close(task, Status.failed, at, error=error)
            return
        self._close(task, Status.completed, at, error="")
        for paid in tech_debt.paid_back(self._state.debt, self._progress[task].resolved_debt, task, row.sprint):
            self._set(debt=tech_debt.evolve(self._state.debt, paid))

    def _settle(self, event: events.SettlingEvent, at: float) -> None:
        match event:
            case events.NothingLeft(task):
                self._close(task, Status.completed, at, findings="nothing of the breakdown was left to do")
            case events.TaskReported(task=task, findings=findings):
                self._report(task, findings, at)
            case events.TaskFailed(task, error):
                self._close(task, Status.failed, at, error=error)
            case events.TaskSkipped(task, error):
                self._close(task, Status.skipped, at, error=error)
            case events.LandingRefused(task, files, tip):
                self._landing.pop(task, None)
                self._set(tip=tip or self._state.tip)
                self._refuse(task, files, at)
            case events.ConflictResolved(task=task, strategy=strategy, fix=fix):
                self._resolve(task, strategy, fix, at)

    def _report(self, task: TaskId, findings: str, at: float) -> None:
        """A verdict that was there comes back with its task; an attempt that died with its engine is over."""
        self._running.pop(task, None)
        self._work.pop(task, None)
        if review := self._state.reviews.get(task):
            self._update(task, score=critic.score(review.scores), signal=critic.signal(review))
        self._close(task, Status.completed, at, findings=findings, error="")

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

    def _conclude(self, task: TaskId, outcome: events.Outcome, at: float) -> None:
        why = self._aborted.pop(task) if task in self._state.aborted else ""
        if outcome.commit and not isinstance(outcome, events.Done):
            self._update(task, unlanded=(*self._progress[task].unlanded, outcome.commit))
        self._spend(task, outcome.usage)
        match outcome:
            case events.Done():
                self._hear_provider(task, at)
                self._record(task, outcome, at)
            case events.Limited() | events.Interrupted() if why:
                self._close(task, Status.failed, at, error=why)
            case events.Failed():
                self._fail(task, outcome, at)
            case events.Limited():
                provider = providers.provider_of(self._state.policy, self._progress[task].agent)
                self._pause(provider, providers.pause(self._state.pauses.get(provider), outcome, at))
                self._again(task)
            case events.Interrupted() | events.Unmet():
                self._again(task)

    def _fail(self, task: TaskId, failed: events.Failed, at: float) -> None:
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

    def _look_at_dependencies(self, ended: events.AttemptEnded) -> None:
        task, outcome, part = ended.task, ended.outcome, self._state.dependencies
        declared = outcome.dependencies if isinstance(outcome, events.Done) else ()
        if ended.checked or declared:
            looked = external_packages.look(part, task, ended.checked, unmet=isinstance(outcome, events.Unmet))
            self._set(dependencies=external_packages.declare(looked, task, declared))

    def _record(self, task: TaskId, done: events.Done, at: float) -> None:
        """Keeps what an agent handed in; a commit still has to land before the task is completed."""
        self._update(
            task,
            status=Status.landing if done.commit else self._progress[task].status,
            findings=done.findings,
            commit=done.commit,
            changed=done.changed,
            resolved_debt=done.resolved_debt,
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
        for name in done.resolved_debt:
            if tech_debt.named(self._state.debt, name) is None:
                self._warnings.append(f'{task} says that it pays back the debt "{name}", which nobody knows')
        if done.commit:
            self._landing[task] = None
        else:
            self._complete(task, at)

    def _take_up_debt(self, task: TaskId, done: events.Done, at: float) -> None:
        sprint = self._state.tasks[task].sprint
        for found in tech_debt.reported(self._state.debt, done.tech_debt, task=task, sprint=sprint, at=at):
            self._set(debt=tech_debt.evolve(self._state.debt, found))
            self._tell(found, at)

    def _keep_documents(self, task: TaskId, done: events.Done) -> None:
        if done.design:
            if self._state.tasks[task].sprint in {self._state.tasks[other].sprint for other in self._state.designs}:
                self._revised[task] = None
            self._designs[task] = done.design
            for name in (name for item in done.design.tasks for name in item.feedback):
                if feedback.named(self._state.feedback, name) is None:
                    self._warnings.append(f'{task} takes up the feedback "{name}", which nobody gave')
        if done.review:
            self._reviews[task] = done.review
            self._update(task, score=critic.score(done.review.scores), signal=critic.signal(done.review))
        if done.verification:
            self._verifications[task] = done.verification
            self._iterations[task] = done.iterations
        if done.baseline:
            self._set(baseline=done.baseline)


def _last_number(ended: events.AttemptEnded) -> int:
    """The first request has the attempt's own number; an attempt that was put off before anything began has none."""
    return ended.number - 1 if isinstance(ended.outcome, events.Unmet) else ended.number + max(ended.requests - 1, 0)
