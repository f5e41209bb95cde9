"""Sessions as text."""

from typing import TYPE_CHECKING

from iterdev.core.formatting import one_line
from iterdev.core.types import Ending, Phase, Status
from iterdev.core.views.attention import NeedKind
from iterdev.core.views.gates import GateView
from iterdev.core.views.session import SessionView, spending_lines

if TYPE_CHECKING:
    from iterdev.app.branches.pull_request import OpenedPullRequest

WAVES = 20
"""Waves that the summary lists; the report has them all."""


def opened_text(opened: "OpenedPullRequest") -> str:
    return f"{'Opened' if opened.is_new else 'Brought up to date'}: {opened.url}"


def status_text(view: SessionView) -> str:
    """The status: what needs the user, a mark per task, then what the team says about itself, and the session."""
    width = max((len(task.id) for task in view.tasks), default=0)
    lines = [*_needs(view), "", f"Pipeline Status ({view.team.pipeline or 'not chosen yet'}):"]
    lines += [f"{task.mark:<6} {task.id:<{width}} ({task.role}) -> {task.note}" for task in view.tasks]
    lines += [
        "",
        *(f"{name}: {text}" for name, text in view.team.facts),
        f"Session: {view.id}",
        f"State: {_standing(view)}",
        f"Tasks: {', '.join(f'{count} {status}' for status, count in view.counts.items() if count)}",
    ]
    usage = view.usage
    if usage.tokens or usage.cost_usd:
        lines.append(f"Spent: {usage.input_tokens} tokens in, {usage.output_tokens} out, ${usage.cost_usd:.2f}")
        lines += [f"  {line}" for line in spending_lines(view)]
    lines += [f"Environment: {text}" for text in view.environments]
    lines += [f"{name}: {text}" for name, text in (("Feedback", view.feedback), ("Technical debt", view.debt)) if text]
    lines += [f"Warning: {text}" for text in view.warnings]
    for gate in view.gates:
        if gate.details or _variants(gate):
            lines += ["", *_question(gate), *_variants(gate)]
    return "\n".join(lines)


def _needs(view: SessionView) -> list[str]:
    """What needs the user, and what is only waiting."""
    waiting = [f"Paused: {need.text}" for need in view.needs if need.kind is NeedKind.paused]
    needs = [need for need in view.needs if need.kind is not NeedKind.paused]
    if not needs:
        return ["Needs you: nothing", *waiting]
    lines = ["Needs you:"]
    for need in needs:
        lines += [f"  {need.kind}: {need.text}", *(f"    {command}" for command in need.commands)]
    return [*lines, *waiting]


def _standing(view: SessionView) -> str:
    if view.outcome.is_over:
        accepted = [f"accepted as {view.branch.accepted[:12]}"] if view.branch.accepted else []
        if reasons := view.outcome.reasons:
            archived = ["archived"] if view.phase is Phase.archived else []
            return ", ".join((*archived, *accepted, f"not successful: {'; '.join(reasons)}"))
        # Facts that a status such as "completed" does not show.
        return ", ".join((view.phase, *view.team.reservations, *accepted))
    if view.running:
        return _running(view)
    if view.gates:
        return "waiting for an answer"
    why = f": {view.why}" if view.why else ""
    return f"not running{why}; continue with `iterdev resume {view.id}`"


def _running(view: SessionView) -> str:
    waiting = ", waiting for an answer" if view.gates else ""
    if not view.detached:
        return f"running in process {view.process}{waiting}"
    return f"running in the background{waiting}; stop it with `kill {view.process}`"


def _questions(view: SessionView) -> list[str]:
    """The questions with what they are about, and the commands that answer them."""
    lines: list[str] = []
    for gate in view.gates:
        commands = [f"  iterdev answer {view.id} {gate.id} {choice}" for choice in gate.choices[: gate.listed]]
        lines += ["", *_question(gate), *commands, *_variants(gate)]
    return lines


def _question(gate: GateView) -> list[str]:
    return [f"Question ({gate.id}): {gate.question}", *(f"  {line}" for line in gate.details)]


def _variants(gate: GateView) -> list[str]:
    others = gate.choices[gate.listed :]
    return [f"  or, in place of {gate.default}: {', '.join(others)}"] if others else []


def summary(view: SessionView, ending: Ending) -> str:
    """The summary at the end of a run."""
    lines = [f"{view.id}: {_counts(view, ending)}"]
    if ending is Ending.over and len(view.waves) > 1:
        lines += [f"  {wave.summary}" for wave in view.waves[:WAVES]]
    for status in (Status.failed, Status.skipped):
        lines += [
            f"  {status:<7} {task.id}: {one_line(task.result.error)}" for task in view.tasks if task.status is status
        ]
    lines += [f"  not landed {task}: {conflict}" for task, conflict in view.outcome.not_landed.items()]
    lines += [f"  warning: {text}" for text in view.warnings if not _is_told_last(text, view)]
    match ending:
        case Ending.over:
            lines += _next_steps(view)
        case Ending.waiting:
            lines += [*_questions(view), "", f"Then: iterdev resume {view.id}"]
        case Ending.interrupted:
            lines.append(f"Interrupted; everything is saved. Continue with: iterdev resume {view.id}")
        case Ending.stepped:
            at_work = [f"{task.id} ({task.role})" for task in view.tasks if task.status is Status.in_progress]
            begun = f"Running in the background: {', '.join(at_work)}." if at_work else "One step done."
            lines.append(f"{begun} Next: iterdev resume {view.id} --step")
    return "\n".join(lines)


def _is_told_last(warning: str, view: SessionView) -> bool:
    """Whether the last line gives the same details as a reason."""
    details = (reason.partition(": ")[2] for reason in view.outcome.reasons)
    return any(text and warning.endswith(f": {text}") for text in details)


def _counts(view: SessionView, ending: Ending) -> str:
    """Of a run that is not over, what is left to do as well."""
    left = (Status.in_progress, Status.pending) if ending is not Ending.over else ()
    return ", ".join(
        [_final_counts(view), *(f"{view.counts[status]} {status}" for status in left if view.counts[status])]
    )


def _final_counts(view: SessionView) -> str:
    return ", ".join(f"{view.counts[status]} {status}" for status in Status if status.is_final)


def _next_steps(view: SessionView) -> list[str]:
    if view.outcome.ended_early:
        return [f"Ended: {view.why}"]
    return [*_where_the_work_is(view), *_verdict(view)]


def _verdict(view: SessionView) -> list[str]:
    """The last line: why the session is no success, or what its success leaves open."""
    if reasons := view.outcome.reasons:
        return [f"Not successful: {'; '.join(_untold(reason, view) for reason in reasons)}"]
    return [f"Note: {', '.join(view.team.reservations)}"] if view.team.reservations else []


def _untold(reason: str, view: SessionView) -> str:
    """A reason of the team without the details that the line of a failed task gave."""
    what, _, details = reason.partition(": ")
    errors = (one_line(task.result.error) for task in view.tasks if task.status is Status.failed)
    is_told = bool(details) and any(error.endswith(f": {details}") for error in errors)
    return what if is_told and reason in view.team.shortcomings else reason


def _where_the_work_is(view: SessionView) -> list[str]:
    branch = view.branch
    lines = [f"Report: {view.folder}/context.md"]
    if branch.has_changes:
        lines.append(f"Branch: {branch.name} ({branch.tip[:12]})")
    if view.phase is Phase.archived:
        lines.append(f"Archived; reopen it with: iterdev reopen {view.id}")
    if branch.accepted:
        return [*lines, f"Accepted as {branch.accepted[:12]}"]
    failed = view.counts[Status.failed] or view.counts[Status.skipped]
    if failed:
        lines.append(f"Try again with: iterdev retry {view.id}")
    if branch.has_changes:
        what = "what landed anyway" if view.outcome.reasons else "it"
        lines.append(f"Accept {what} with: iterdev accept {view.id}")
    return lines


def completion_text(view: SessionView) -> str:
    """The state of a session that was archived, kept or reopened, and how to continue."""
    counts = _final_counts(view)
    if view.phase is not Phase.archived:
        return f"{view.id} is kept active: {counts}\nContinue with: iterdev resume {view.id}"
    exported = f"\nExported to: {view.outcome.exported}" if view.outcome.exported else ""
    return f"{view.id} is archived: {counts}{exported}\nReopen it with: iterdev reopen {view.id}"
