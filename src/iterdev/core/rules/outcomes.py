"""What follows when an attempt ends, and when its work lands or does not: decided once, and recorded with it."""

from collections.abc import Iterable, Iterator

from iterdev.core.collaboration import external_packages, tech_debt, wisdom
from iterdev.core.collaboration.wisdom import Note, WisdomNoted
from iterdev.core.errors import HostError
from iterdev.core.limits import providers
from iterdev.core.limits.agent_failures import REPLACING, Reaction, reaction
from iterdev.core.limits.providers import AgentReplaced, ProviderAnswered
from iterdev.core.results import Result, shortened
from iterdev.core.rules import landings
from iterdev.core.rules.branch_updates import brought_in
from iterdev.core.rules.team_rules import Interpretation, Procedure, TeamRules
from iterdev.core.session import events
from iterdev.core.session.attempts import AttemptReport, Placement, Success
from iterdev.core.session.conflicts import overlap
from iterdev.core.session.events import Event, Outcome
from iterdev.core.session.state import State
from iterdev.core.types import Status, TaskId

HOSTS = 3
"""Attempts at a task, one after another, that hosts may fail to carry out."""


def attempt_ended(state: State, team: TeamRules, report: AttemptReport, at: float) -> tuple[Event, ...]:
    """The end of an attempt, with all that follows from it; of one that is not open any more, only a warning."""
    started = state.attempts.running.get(report.task)
    if started is None or started.fence != report.fence:
        return _too_late(state, report)
    match report.outcome:
        case Success() as success:
            return _succeeded(state, team, report, success, at)
        case events.Failed() as failed:
            return _failed(state, report, failed, at)
        case events.Limited() as limited:
            return _limited(state, report, limited, at)
        case events.Interrupted() | events.Unmet() as outcome:
            return (_ended(state, report, outcome, *_again_or_failed(state, report.task, outcome)),)


def attempt_placed(state: State, placement: Placement) -> tuple[Event, ...]:
    """The host of an attempt, if it is open and its host was not known."""
    task, started = placement.task, state.attempts.running.get(placement.task)
    if started is None or started.fence != placement.fence or state.attempts.hosts.get(task) == placement.host:
        return ()
    return (events.AttemptPlaced(task, placement.number, placement.host),)


def require_hosts(state: State, report: AttemptReport) -> None:
    """Fails when one host after another could not carry out an attempt at the task: the next one cannot either."""
    if isinstance(report.outcome, events.Interrupted) and state.attempts.host_problems.get(report.task, 0) >= HOSTS:
        raise HostError(
            f"{report.task}: no host could carry out its last {HOSTS} attempts: {report.outcome.problem}",
            hint=f"iterdev resume {state.session.id}  # when that is repaired",
        )


def _too_late(state: State, report: AttemptReport) -> tuple[Event, ...]:
    """What a host reports after its attempt was given to another one, or twice; its commit stays under its ref."""
    commit = report.outcome.commit
    kept = f"; its work is kept as {commit}" if commit else ""
    warning = f"{report.task}: the report of attempt {report.number} came too late and was not used{kept}"
    return () if warning in state.warnings else (events.Warned(warning),)


def _ended(
    state: State, report: AttemptReport, outcome: Outcome, status: Status, error: str = ""
) -> events.AttemptEnded:
    unmet = isinstance(outcome, events.Unmet)
    blocked_by = external_packages.problems(report.checked, state.packages.overridden) if unmet else ()
    return events.AttemptEnded(
        task=report.task,
        number=report.number,
        agent=state.tasks.progress[report.task].agent,
        requests=report.requests,
        outcome=outcome,
        status=status,
        error=error,
        checked=report.checked,
        blocked_by=blocked_by,
        denied=report.denied,
    )


def _again_or_failed(state: State, task: TaskId, outcome: Outcome) -> tuple[Status, str]:
    """A task whose attempt does not count is pending again, unless the attempt was aborted, or its hosts always die."""
    match outcome:
        case events.Unmet():
            why = ""
        case events.Interrupted(host_died=True):
            why = state.attempts.aborted.get(task) or _always_dying(state, task)
        case _:
            why = state.attempts.aborted.get(task, "")
    return (Status.failed, why) if why else (Status.pending, "")


def _always_dying(state: State, task: TaskId) -> str:
    """Why a task has failed whose host has just died, if that has happened too often."""
    count = state.attempts.host_deaths.get(task, 0) + 1
    if count < state.policy.host_deaths:
        return ""
    return (
        f"the host died during each of the last {count} attempts, perhaps because of what the agent or the tests do"
        f" there (memory, disk); look at the logs of the hosts, then run `iterdev retry {state.session.id}`"
    )


def _succeeded(state: State, team: TeamRules, report: AttemptReport, success: Success, at: float) -> tuple[Event, ...]:
    task, result = state.tasks.plan[report.task], success.result
    meaning = team.interpret(state, task, success)
    done = events.Done(
        findings=result.findings,
        commit=success.commit,
        changed=success.changed,
        usage=success.usage,
        discoveries=result.discoveries,
        dependencies=meaning.dependencies,
        resolved_debt=meaning.resolved_debt,
        syntax_clean=success.syntax_clean,
    )
    status, error = _status(success, meaning)
    sprint, named = team.sprint(state, task.id), meaning.resolved_debt
    unknown = (name for name in named if tech_debt.by_id(state.debt, name) is None)
    return (
        _ended(state, report, done, status, error),
        *meaning.events,
        *_answered(state, task.id, at),
        *_learned(state, task.id, result, success.commit, at),
        *map(events.Warned, success.notes),
        *tech_debt.reported(state.debt, result.tech_debt, task=task.id, sprint=sprint, at=at),
        *(
            events.Warned(f'{task.id} reports that it resolves the debt "{one}", which does not exist')
            for one in unknown
        ),
        *(tech_debt.resolved_by(state.debt, named, task.id, sprint) if status is Status.completed else ()),
    )


def _status(success: Success, meaning: Interpretation) -> tuple[Status, str]:
    """A commit still has to land before the task is completed, or fails."""
    if success.commit:
        return Status.landing, ""
    return (Status.failed, meaning.error) if meaning.error else (Status.completed, "")


def _learned(state: State, task: TaskId, result: Result, commit: str | None, at: float) -> Iterator[WisdomNoted]:
    notes = [
        note(state, file, text, task, commit or state.tasks.progress[task].base, at)
        for file in wisdom.FILES
        for text in getattr(result.wisdom, file)
    ]
    if notes:
        yield WisdomNoted(tuple(notes))


def note(state: State, file: str, text: str, task: TaskId, commit: str, at: float) -> Note:
    return wisdom.note(file, text, session=state.session.id, task=task, commit=commit, at=at)


def taken_over(state: State, written: Iterable[wisdom.Written], at: float) -> tuple[Event, ...]:
    """Entries of the session folder that are not known yet; what a task wrote counts as long as its work does."""
    known, tasks = {one.id for one in state.wisdom.notes} | set(state.wisdom.rejected), state.tasks
    new: dict[str, Note] = {}
    for entry in written:
        task = TaskId(entry.worker) if entry.worker in tasks.plan else TaskId("")
        if task and tasks.status(task) is Status.pending:
            continue
        commit = (tasks.progress[task].commit or "") if task else ""
        one = note(state, entry.file, shortened(entry.text, wisdom.SHOWN), task, commit, at)
        if one.id not in known:
            new.setdefault(one.id, one)
    return (WisdomNoted(tuple(new.values())),) if new else ()


def _answered(state: State, task: TaskId, at: float) -> Iterator[ProviderAnswered]:
    """A provider that has answered since its pause is not paused any longer."""
    provider = state.agents.provider_of(state.tasks.progress[task].agent)
    known = state.providers.pauses.get(provider)
    if known and known.until <= at:
        yield ProviderAnswered(provider)


def _failed(state: State, report: AttemptReport, failed: events.Failed, at: float) -> tuple[Event, ...]:
    """Another agent takes over, if the failure is one that it need not have and one is left to try."""
    task, agent = report.task, state.tasks.progress[report.task].agent
    how = reaction(failed.kind) if failed.kind else None
    successors = other_agents(state, task, agent) if how in REPLACING else []
    if not successors:
        answered = _answered(state, task, at) if failed.kind is None else ()
        error, debt = landings.parked(state, task, failed.error)
        return _ended(state, report, failed, Status.failed, error), *answered, *debt
    following, for_every_task = successors[0], how is Reaction.replace_agent
    replaced = AgentReplaced(
        task=task, agent=agent, successor=following, error=failed.error, for_every_task=for_every_task
    )
    warning = events.Warned(f"{task}: {failed.error}; {following} takes over", announced=False)
    return _ended(state, report, failed, Status.pending), replaced, warning


def other_agents(state: State, task: TaskId, agent: str) -> list[str]:
    """The agents that can still be tried for a task when this one cannot do it."""
    row = state.tasks.plan[task]
    chain = state.agents.chain(row.role, row.agent)
    return providers.remaining(state.providers, chain, (*state.tasks.progress[task].replaced_agents, agent))


def _limited(state: State, report: AttemptReport, limited: events.Limited, at: float) -> tuple[Event, ...]:
    status, error = _again_or_failed(state, report.task, limited)
    ended = _ended(state, report, limited, status, error)
    if status is Status.failed:
        return (ended,)
    provider = state.agents.provider_of(state.tasks.progress[report.task].agent)
    error, reset_at = limited.error, limited.reset_at
    return ended, providers.pause(state.providers, state.policy, provider, error=error, reset_at=reset_at, at=at)


def landed(state: State, team: TeamRules, task: TaskId, tip: str) -> tuple[Event, ...]:
    """The work is on the branch; it may be in conflict with what other tasks landed meanwhile."""
    changed = state.tasks.progress[task].changed if _may_conflict(state, team, task) else ()
    files, others = overlap(state.conflicts, task, changed) if changed else ((), ())
    base = brought_in(state, task)
    if others:
        conflict = events.Conflict(files=files, others=others, merged=True)
        return (events.Landed(task=task, tip=tip, changed=changed, conflict=conflict, base=base),)
    status, error, follow = completion(state, team, task)
    return events.Landed(task=task, tip=tip, changed=changed, status=status, error=error, base=base), *follow


def landing_refused(state: State, team: TeamRules, task: TaskId, files: tuple[str, ...], tip: str) -> tuple[Event, ...]:
    """Conflicting changes are kept and merged by a further task; other work must not conflict, and fails."""
    if not _may_conflict(state, team, task):
        error = not_merged(state, task, files)
        return (events.LandingRefused(task=task, files=files, tip=tip, status=Status.failed, error=error),)
    _, others = overlap(state.conflicts, task, files)
    conflict = events.Conflict(files=files, others=others, merged=False)
    return (events.LandingRefused(task=task, files=files, tip=tip, conflict=conflict),)


def completion(state: State, team: TeamRules, task: TaskId) -> tuple[Status, str, tuple[Event, ...]]:
    """The final status of a task whose work has landed, and what follows from it."""
    if error := team.completion_error(state, task):
        return Status.failed, error, ()
    named = state.tasks.progress[task].resolved_debt
    return Status.completed, "", tech_debt.resolved_by(state.debt, named, task, team.sprint(state, task))


def not_merged(state: State, task: TaskId, files: Iterable[str]) -> str:
    kept = state.tasks.progress[task].commit
    return f"conflicts with work that landed before it in {', '.join(files)}; the change is kept as {kept}"


def _may_conflict(state: State, team: TeamRules, task: TaskId) -> bool:
    return team.roles[state.tasks.plan[task].role].procedure is Procedure.change
