"""What the issue team announces on the message bus."""

from iterdev.core.collaboration.messages import COORDINATOR, COORDINATOR_TYPES, STATE_UPDATE, Announced
from iterdev.core.formatting import counted
from iterdev.core.rules.announcements import coordinator, end_of_worker, from_role, step_of_worker, worker
from iterdev.core.session import events
from iterdev.core.session.events import Event
from iterdev.core.session.landing_events import LandingTakenOut
from iterdev.core.session.state import State
from iterdev.core.types import Status, TaskId
from iterdev.teams.issues import events as team_events
from iterdev.teams.issues.marshal import ORDER_GATE
from iterdev.teams.issues.roles import ROLES, WORKERS, Role
from iterdev.teams.issues.state import issue_part

MESSAGE_TYPES: dict[str, tuple[str, ...]] = {
    COORDINATOR: (
        "pipeline_selected", "review_result", "fix_required", "task_assigned", "pipeline_update", "escalation",
        *COORDINATOR_TYPES,
    ),
    Role.explorer: ("context_ready", "impact_assessed", "error"),
    Role.planner: ("solution_ready", "multi_solution", "error"),
    Role.reviewer: ("approved", "concerns", "rejected", "error"),
    Role.integrator: ("queue_ready", "conflict_found", "error"),
    Role.implementer: ("impl_complete", "impl_failed", "error"),
}  # fmt: skip
"""Types that belong to one sender; any other type is open to all."""
KINDS = {
    Role.explorer: "context_ready",
    Role.planner: "solution_ready",
    Role.integrator: "queue_ready",
    Role.implementer: "impl_complete",
}
"""With which each role says that its work is done; an audit says its verdict."""


def announce(event: Event, state: State) -> Announced | None:
    match event:
        case team_events.TeamStarted(pipeline=pipeline, issues=issues):
            data = {"pipeline_mode": pipeline, "pipeline_stages": list(WORKERS), "roles": [COORDINATOR, *WORKERS]}
            data |= {"team_name": state.session.team_name, "issue_ids": [issue.id for issue in issues]}
            return coordinator("pipeline_selected", f"{pipeline} for {counted(len(issues), 'issue')}", **data)
        case team_events.IssuesExplored(task, contexts):
            names = ", ".join(context.issue_id for context in contexts)
            return worker(state, task, "context_ready", f"{task} explored {names}")
        case team_events.SolutionsPlanned(task=task, solutions=solutions):
            several = [issue for issue, found in solutions.items() if len(found) > 1]
            kind = "multi_solution" if several else "solution_ready"
            return _done(state, task, kind, f"{task} planned {', '.join(several or solutions)}")
        case team_events.AuditScored(task=task, verdict=verdict, score=score):
            return worker(state, task, verdict.value, f"{task}: {verdict}, {score} of 100")
        case team_events.CycleStarted(number=number, raised_by=task, rejected=rejected):
            text = f"fix cycle {number}: {task} rejected the solutions of {', '.join(rejected)}"
            return coordinator("fix_required", text, cycle=number, issues=list(rejected))
        case team_events.AuditPassed(task, forced):
            text = f"{task} {'rejected, and the limit of fix cycles is reached' if forced else 'passed'}"
            return coordinator("review_result", f"{text}; the pipeline goes on", task=task, forced=forced)
        case team_events.QueueFormed(task=task, order=order):
            text = f"{counted(len(order.entries), 'solution')} in {counted(len(order.groups), 'group')}"
            return worker(state, task, "queue_ready", text, conflicts=len(order.conflicts))
        case _:
            return _work(event, state)


def _work(event: Event, state: State) -> Announced | None:
    match event:
        case events.AttemptEnded(task=task, outcome=events.Done(findings=findings, commit=commit)):
            if state.tasks.plan[task].role != Role.implementer:
                return None
            data = {"ref": commit} if commit else {}
            return _done(state, task, KINDS[Role.implementer], f"{task} completed: {findings}", **data)
        case events.TaskReported(task=task, findings=findings):
            return _done(state, task, _kind(state, task), f"{task} completed: {findings}")
        case events.AttemptEnded(task=task, outcome=events.Failed(error=error), status=Status.failed):
            if state.tasks.plan[task].role != Role.implementer:
                return None
            return worker(state, task, "impl_failed", f"{task} failed: {error[:500]}")
        case LandingTakenOut(task=task, error=error, status=Status.failed):
            return worker(state, task, "impl_failed", f"{task} failed: {error[:500]}")
        case events.GateOpened(gate) if gate.kind == ORDER_GATE:
            text = f"{', '.join(gate.choices)} touch the same files, and nothing says which comes first"
            return from_role(Role.integrator, "conflict_found", text, issues=list(gate.choices))
        case events.WorkerEnded(role, tasks) if tasks and ROLES[role].loops:
            return end_of_worker(state, role, tasks, KINDS[Role(role)])
        case events.Finished(why):
            done = issue_part(state).issues
            return coordinator("shutdown", why or f"{counted(len(done), 'issue')} worked on")
        case events.TasksAdded(tasks) if len(tasks) < len(state.tasks.plan):
            return coordinator(STATE_UPDATE, f"{counted(len(tasks), 'task')} added: {', '.join(t.id for t in tasks)}")
        case _:
            return None


def _done(state: State, task: TaskId, kind: str, text: str, **data: object) -> Announced:
    role = state.tasks.plan[task].role
    if state.lifecycle.worker == role and ROLES[role].loops:
        return step_of_worker(state, task, text)
    return worker(state, task, kind, text, **data)


def _kind(state: State, task: TaskId) -> str:
    found = issue_part(state).audits.get(task)
    return found.verdict.value if found else KINDS.get(Role(state.tasks.plan[task].role), STATE_UPDATE)
