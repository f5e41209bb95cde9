"""The rules of the issue team: what its results mean, and what follows when its tasks end."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from iterdev.core.collaboration import tech_debt
from iterdev.core.results import Discovery, shortened
from iterdev.core.rules.team_rules import Interpretation
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import (
    AnswerApplied,
    Event,
    Finished,
    Gate,
    GateOpened,
    TaskFailed,
    TasksAdded,
    TasksReplanned,
    UpdateRequested,
    Warned,
)
from iterdev.core.session.state import State
from iterdev.core.session.task_table import Queue
from iterdev.core.session.tasks import Task, joining
from iterdev.core.types import Severity, Status, TaskId, TaskKind
from iterdev.teams.issues import audit, events, marshal, pipelines
from iterdev.teams.issues.results import (
    Audit,
    Build,
    Exploration,
    Integration,
    PlannedSolution,
    Planning,
    as_solution,
    named_issues,
)
from iterdev.teams.issues.roles import AUTO, Fields, Pipeline, Role, Verdict, fields
from iterdev.teams.issues.state import Issues, issue_part, issues_of, last_audit
from iterdev.tracker import solutions
from iterdev.tracker.solutions import Solution

SOLUTION_GATE = "solution"
REJECTION_GATE = "rejection"
PROCEED, REVISE, STOP = "proceed", "revise", "stop"
NAMED, TITLE_SHOWN = 5, 60
"""Issues that the question about the plan names, and characters of their titles."""
SMALL, LARGE = "gemini", "codex"
"""The agents that `AUTO` stands for."""


def plan(state: State) -> tuple[Event, ...]:
    part = issue_part(state)
    return (TasksAdded(pipelines.first_tasks(part.pipeline, tuple(part.issues), part.method, state.scope)),)


def plan_note(state: State) -> str:
    """Which issues the tasks are about."""
    issues = [
        f"{one.id} ({shortened(one.description.title, TITLE_SHOWN)})" for one in issue_part(state).issues.values()
    ]
    rest = f" and {len(issues) - NAMED} more" if len(issues) > NAMED else ""
    return f" They resolve {', '.join(issues[:NAMED])}{rest}."


def interpret(state: State, task: Task, success: Success) -> Interpretation:
    match success.result:
        case Exploration(contexts=contexts):
            own = issues_of(state, task)
            known = tuple(context for context in contexts if context.issue_id in own)
            lacking = _left_out(task, named_issues(contexts), own)
            return Interpretation(events=(events.IssuesExplored(task.id, known), *lacking))
        case Planning(solutions=planned):
            return _planned(state, task, planned)
        case Audit() as report:
            return _audited(state, task, report)
        case Integration(order=order, conflicts=conflicts):
            ordered = events.ConflictsOrdered(task=task.id, order=order, conflicts=conflicts)
            return Interpretation(events=(ordered,))
        case Build(external_dependencies=dependencies):
            return Interpretation(events=_tested(state, task, success), dependencies=dependencies)
        case _:
            return Interpretation()


def _tested(state: State, task: Task, success: Success) -> tuple[Event, ...]:
    measured = success.measured
    if measured is None:
        return ()
    run = events.BuildTested(task=task.id, verification=measured.verification)
    return (run, events.BaselineMeasured(measured.baseline, state.branch.base)) if measured.baseline else (run,)


def _left_out(task: Task, named: Iterable[str], wanted: Iterable[str], so: str = "") -> Iterator[Warned]:
    """Warnings about issues that a result does not mention, and about others that it does; `so` is what follows."""
    given, own = set(named), set(fields(task).issues)
    yield from (Warned(f"{task.id} says nothing about {issue}{so}") for issue in wanted if issue not in given)
    yield from (Warned(f'{task.id} names "{issue}", which is none of its issues') for issue in sorted(given - own))


def _planned(state: State, task: Task, planned: tuple[PlannedSolution, ...]) -> Interpretation:
    """The solutions with their ids; a first plan is one for every issue, a revision for those that were rejected."""
    part, own = issue_part(state), fields(task)
    wanted = issues_of(state, task)
    if own.cycle and (last := last_audit(state)):
        wanted = audit.rejected(last)
    given = named_issues(planned)
    if missing := [issue for issue in wanted if issue not in given]:
        return Interpretation(error=f"there is no solution for {', '.join(missing)}")
    found: dict[str, tuple[Solution, ...]] = {}
    # A solution that was not rejected stays: nobody would audit another one.
    for one in (one for one in planned if one.issue_id in wanted):
        taken = {
            *part.issues[one.issue_id].solutions,
            *(known.id for known in (*part.solutions.get(one.issue_id, ()), *found.get(one.issue_id, ()))),
        }
        name = one.id if one.id and one.id not in taken else solutions.new_id(one.issue_id, taken)
        found[one.issue_id] = (*found.get(one.issue_id, ()), as_solution(one, name))
    accepted = events.SolutionsPlanned(task=task.id, solutions=found, revision=bool(own.cycle))
    kept = [issue for issue in given if issue in own.issues and issue not in wanted]
    ignored = (
        (Warned(f"{task.id} plans {', '.join(kept)} anew, which nobody rejected; it is left out"),) if kept else ()
    )
    return Interpretation(events=(accepted, *ignored, *_left_out(task, given, ())))


def _audited(state: State, task: Task, report: Audit) -> Interpretation:
    part = issue_part(state)
    # A revision may be chosen later, and the report is about the solution that was audited.
    audits = tuple(
        replace(one, solution_id=one.solution_id or part.chosen.get(one.issue_id, ""))
        for one in report.audits
        if one.issue_id in part.issues
    )
    known = replace(report, audits=audits)
    if not known.audits:
        return Interpretation(error="the audit is about none of the issues")
    last = last_audit(state)
    scored = audit.scored(task.id, known, part.thresholds, last.verdicts if last else ())
    # A later audit need only look at what was revised.
    wanted = audit.rejected(last) if last else issues_of(state, task)
    so = "; its solution stays rejected" if last else "; its solution counts as approved, and nobody has audited it"
    return Interpretation(events=(scored, *_left_out(task, named_issues(report.audits), wanted, so)))


def before_work(state: State) -> tuple[Event, ...]:
    """Solutions and agents that are chosen or have to be, a queue that cannot be formed, and a missing audit."""
    return _choices(state) or _named_builders(state) or _without_queue(state) or _without_audit(state)


def _choices(state: State) -> tuple[Event, ...]:
    """A single solution is chosen at once; of several the user chooses, and in auto mode it is the first."""
    part = issue_part(state)
    for issue, planned in part.solutions.items():
        if issue in part.chosen:
            continue
        names = tuple(one.id for one in planned)
        if len(names) == 1 or state.policy.auto:
            return (events.SolutionChosen(issue, names[0]),)
        gate = solution_gate(issue, planned)
        if answer := state.gates.answer(gate.id):
            return AnswerApplied(gate.id), events.SolutionChosen(issue, answer)
        return (GateOpened(gate),)
    return ()


def solution_gate(issue: str, planned: Iterable[Solution]) -> Gate:
    names = tuple(one.id for one in planned)
    question = f"{issue} has {len(names)} solutions. Which one is carried out?"
    return Gate(kind=SOLUTION_GATE, subject=issue, question=question, choices=names)


def _without_queue(state: State) -> tuple[Event, ...]:
    ready = (state.tasks.plan[task] for task in state.tasks.ready)
    row = next((task for task in ready if task.role == Role.integrator), None)
    error = marshal.obstacle(state) if row else ""
    return (TaskFailed(row.id, error),) if row and error else ()


def _without_audit(state: State) -> tuple[Event, ...]:
    """An audit that failed counts as approved: what waited for it goes on without it.

    In a wave that is still open, the user may want it tried again.
    """
    part = issue_part(state)
    for task in state.tasks.of_role(Role.reviewer):
        if state.tasks.wave or state.tasks.status(task.id) is not Status.failed or task.id in part.judged:
            continue
        waiting = tuple(
            replace(row, deps=tuple(dict.fromkeys(dep for old in row.deps for dep in _past(old, task))))
            for row in map(state.tasks.plan.__getitem__, state.tasks.dependants.get(task.id, ()))
        )
        warning = f"{task.id} left no audit report; the solutions count as approved, and nobody has audited them"
        replanned = (TasksReplanned(waiting),) if waiting else ()
        return events.AuditMissing(task.id), *replanned, Warned(warning)
    return ()


def _past(dep: TaskId, audit_task: Task) -> tuple[TaskId, ...]:
    """The dependencies of an audit in its place."""
    return audit_task.deps if dep == audit_task.id else (dep,)


def may_have_nothing_to_do(queue: Queue) -> bool:
    return queue.role == Role.integrator


def nothing_to_do(state: State, task: Task) -> str:
    """An integrator has nothing to do where the order follows from files, dependencies and priorities."""
    if task.role != Role.integrator or marshal.obstacle(state) or marshal.undecided(state):
        return ""
    return marshal.summary(marshal.queue_order(state))


def follow_up(state: State) -> tuple[Event, ...]:
    return _after_audit(state) or _after_marshal(state)


def _after_audit(state: State) -> tuple[Event, ...]:
    part = issue_part(state)
    for task, found in part.audits.items():
        if task in part.judged or state.tasks.status(task) is not Status.completed:
            continue
        if found.verdict is not Verdict.rejected:
            return events.AuditPassed(task), *_concerns(found)
        if part.cycles < part.thresholds.cycles:
            return _cycle(state, found)
        return _rejected_again(state, found)
    return ()


def _concerns(found: events.AuditScored) -> Iterator[Warned]:
    names = [one.issue_id for one in found.verdicts if one.verdict is Verdict.concerns]
    if names:
        yield Warned(f"{found.task} has concerns about {', '.join(names)}")


def _cycle(state: State, found: events.AuditScored) -> tuple[Event, ...]:
    """Revision and audit come before what waited for the audit that rejected."""
    part, table = issue_part(state), state.tasks
    number, last = part.cycles + 1, table.plan[found.task]
    solved = [task.id for task in table.of_role(Role.planner)]
    new = pipelines.TaskFactory(state.scope, table.plan)
    added = joining(pipelines.fix_cycle(new, last, fields(last).issues, solved, number), table.plan)
    waiting = [table.plan[task] for task in table.dependants.get(found.task, ())]
    moved = tuple(
        replace(
            row,
            deps=tuple(added[1].id if dep == found.task else dep for dep in row.deps),
            context_from=(*row.context_from, added[0].id),
        )
        for row in waiting
        if not table.status(row.id).is_final
    )
    started = events.CycleStarted(number=number, raised_by=found.task, rejected=audit.rejected(found))
    return started, TasksAdded(added), *((TasksReplanned(moved),) if moved else ())


def _rejected_again(state: State, found: events.AuditScored) -> tuple[Event, ...]:
    """After the last fix cycle the work goes on with a warning and a debt, or the user decides."""
    asks = issue_part(state).thresholds.asks and not state.policy.auto
    gate = rejection_gate(found)
    match state.gates.answer(gate.id) if asks else PROCEED:
        case None:
            return (GateOpened(gate),)
        case choice if choice == REVISE:
            return AnswerApplied(gate.id), *_cycle(state, found)
        case choice if choice == STOP:
            return (Finished(f"the solutions of {', '.join(audit.rejected(found))} were rejected"),)
        case _:
            return _forced(state, found)


def rejection_gate(found: events.AuditScored) -> Gate:
    names = ", ".join(audit.rejected(found))
    question = f"{found.task} rejected the solutions of {names} again. Build them all the same?"
    return Gate(kind=REJECTION_GATE, subject=found.task, question=question, choices=(PROCEED, REVISE, STOP))


def _forced(state: State, found: events.AuditScored) -> tuple[Event, ...]:
    names = ", ".join(audit.rejected(found))
    cycles = issue_part(state).cycles
    text = f"the solutions of {names} are built although {found.task} rejected them after {cycles} fix cycles"
    debt = tech_debt.Debt(
        category=tech_debt.DebtCategory.design,
        source_task_id=found.task,
        description=f"Rejected solutions of {names} were built: {'; '.join(audit.objections(found))}",
        severity=Severity.high,
        detection_date=state.updated_at,
    )
    return events.AuditPassed(found.task, forced=True), Warned(text), tech_debt.identified(state.debt, debt)


def _after_marshal(state: State) -> tuple[Event, ...]:
    """The queue, and in a batch the tasks that build its groups."""
    part = issue_part(state)
    done = (task for task in state.tasks.of_role(Role.integrator) if state.tasks.status(task.id) is Status.completed)
    task = next(done, None)
    if task is None:
        return ()
    if part.queue is None and not part.queue_lost and not marshal.obstacle(state):
        return _order_of_conflict(state, task) or (events.QueueFormed(task=task.id, order=marshal.queue_order(state)),)
    if part.pipeline is Pipeline.batch and not part.has_builds:
        return events.BuildsPlanned(task.id), *_builds(state, task)
    return _resolved_method(state, part)


def _order_of_conflict(state: State, task: Task) -> tuple[Event, ...]:
    """What the integrator left open the user decides; in auto mode the issue of the highest priority comes first."""
    issues = marshal.unordered(state)
    if not issues:
        return ()
    if state.policy.auto:
        text = f"{task.id} does not say which of {', '.join(issues)} comes first; {issues[0]} does, by its priority"
        return events.OrderChosen(issues[0]), Warned(text)
    gate = marshal.order_gate(issues)
    if answer := state.gates.answer(gate.id):
        return AnswerApplied(gate.id), events.OrderChosen(answer)
    return (GateOpened(gate),)


def _builds(state: State, task: Task) -> tuple[Event, ...]:
    part, table = issue_part(state), state.tasks
    sources = [row for role in (Role.explorer, Role.planner) for row in table.of_role(role)]
    new = pipelines.TaskFactory(state.scope, table.plan)
    order = part.queue.order if part.queue else None
    builders = [_builder(state, issues) for issues in order.groups] if order else []
    if order is None:
        own = Fields(issues=tuple(part.issues), method=part.method)
        single = new(pipelines.BUILD, "Implementation", Role.implementer, own, [task.id], [row.id for row in sources])
        warning = Warned("the execution queue cannot be read; one task builds all issues")
        return TasksAdded(joining([single], table.plan)), warning
    return (TasksAdded(joining(pipelines.group_builds(new, order, task.id, sources, builders), table.plan)),)


def _builder(state: State, issues: Iterable[str]) -> tuple[str, str]:
    """The method of the task that builds these issues, and the agent if it is not that of its role."""
    part = issue_part(state)
    if part.method != AUTO:
        return part.method, ""
    chosen = (part.solution(issue) for issue in issues)
    tasks = sum(len(one.tasks) for one in chosen if one)
    agent = SMALL if tasks <= part.thresholds.auto_tasks else LARGE
    return agent, agent


def _resolved_method(state: State, part: Issues) -> tuple[Event, ...]:
    """The task that builds everything gets its method when the solutions are known."""
    rows = [task for task in state.tasks.of_role(Role.implementer) if fields(task).method == AUTO]
    resolved = tuple(_with_builder(task, *_builder(state, part.issues)) for task in rows)
    return (TasksReplanned(resolved),) if resolved else ()


def _named_builders(state: State) -> tuple[Event, ...]:
    """Which agents build by the methods in the table: a person may have edited them, and an edit loses the agent."""
    of_session, pending = issue_part(state).method, []
    for task in state.tasks.of_role(Role.implementer):
        method = fields(task).method
        agent = "" if method in {"", AUTO, of_session} else method
        if task.kind is TaskKind.work and state.tasks.status(task.id) is Status.pending and task.agent != agent:
            pending.append(_with_builder(task, method, agent))
    return (TasksReplanned(tuple(pending)),) if pending else ()


def _with_builder(task: Task, method: str, agent: str) -> Task:
    return replace(task, fields=replace(fields(task), method=method), agent=agent)


def finish(state: State) -> tuple[Event, ...]:
    return follow_up(state) or (Finished(),)


def update_tasks(state: State, asked: UpdateRequested) -> tuple[Task, ...]:
    """The task that brings in the user's branch; it is tested as all that lands is."""
    new = pipelines.TaskFactory(state.scope, state.tasks.plan)
    own = Fields(issues=tuple(issue_part(state).issues))
    return (pipelines.update_task(new, f"Bring in {asked.branch} ({asked.commit[:12]})", own),)


def discoveries(state: State, recorded: Sequence[Event]) -> list[tuple[TaskId, Discovery]]:
    """The solutions that are carried out and the files that they share, for all agents that come after."""
    found: list[tuple[TaskId, Discovery]] = []
    part = issue_part(state)
    for event in recorded:
        match event:
            case events.SolutionChosen(issue) if solution := part.solution(issue):
                *_, task = (name for name, issues in part.planned.items() if issue in issues)
                files = len(solutions.files_touched(solution))
                data = {"issue_id": issue, "approach": solution.approach, "estimated_files": files}
                found.append((task, Discovery("solution_approach", data)))
            case events.QueueFormed(task=task, order=order):
                for one in order.conflicts:
                    data = {"issues": list(one.issues), "files": list(one.files), "resolution": one.resolution}
                    found.append((task, Discovery("conflict_found", data)))
            case _:
                pass
    return found


def has_output(state: State, task: Task) -> bool:
    """Whether what an attempt left still counts."""
    part = issue_part(state)
    match task.role:
        case Role.explorer:
            return task.id in part.explored
        case Role.planner:
            return task.id in part.planned
        case Role.reviewer:
            return task.id in part.audits
        case Role.integrator:
            return part.queue is not None and part.queue.task == task.id
        case _:
            return state.tasks.progress[task.id].commit is not None and task.id not in state.conflicts.by_task


def rolled_back(before: State, now: State) -> tuple[Event, ...]:
    then, part = issue_part(before), issue_part(now)
    unjudged = tuple(task for task in part.judged if task in before.tasks.plan and task not in then.judged)
    return (
        events.CyclesRestored(
            cycles=then.cycles, forced=then.forced, has_builds=then.has_builds, chosen=then.chosen, unjudged=unjudged
        ),
    )
