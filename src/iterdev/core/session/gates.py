"""Gates: questions to the user, and their answers."""

from collections.abc import Mapping
from enum import StrEnum
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.draft import without
from iterdev.core.session import events
from iterdev.core.session.task_table import TaskTable

LISTED = 50
"""Tasks that the question about the plan names before it points to the table."""


class GateKind(StrEnum):
    plan = "plan"
    wave = "wave"
    budget = "budget"
    packages = "dependencies"
    consensus = "consensus"
    capability = "capability"
    completion = "completion"


class PlanChoice(StrEnum):
    approve = "approve"
    reject = "reject"


class WaveChoice(StrEnum):
    abort = "abort"
    retry = "retry"


class PackageChoice(StrEnum):
    override = "override"
    recheck = "recheck"


class GoOnChoice(StrEnum):
    go_on = "go-on"
    stop = "stop"


class UnverifiedChoice(StrEnum):
    reject = "reject"
    """The work stays on its branch, and the session counts as not verified."""
    accept = "accept"


class CompletionChoice(StrEnum):
    archive = "archive"
    keep = "keep"
    export = "export"
    retry = "retry"


class Gates(Struct, frozen=True, kw_only=True):
    open: Mapping[str, events.Gate] = {}
    answers: Mapping[str, events.Answer] = {}

    def answer(self, gate: str) -> str | None:
        answer = self.answers.get(gate)
        return answer.choice if answer else None

    def chosen(self, kind: str, choice: str) -> events.Gate | None:
        """The first gate of a kind that was answered with this choice."""
        found = (one.gate for one in self.answers.values() if one.gate.kind == kind and one.choice == choice)
        return next(found, None)


def evolve(part: Gates, event: events.GateEvent | events.RollbackStarted, _: float = 0) -> Gates:
    match event:
        case events.GateOpened(gate):
            return Gates(open={**part.open, gate.id: gate}, answers=without(part.answers, gate.id))
        case events.GateAnswered(gate, choice):
            if gate not in part.open:
                return part
            answered = events.Answer(part.open[gate], choice)
            return Gates(open=without(part.open, gate), answers={**part.answers, gate: answered})
        case events.AnswerApplied(gate):
            return replace(part, answers=without(part.answers, gate))
        case events.RollbackStarted(answers=answers):
            return Gates(answers=answers)


def plan_gate(session: events.Session, tasks: TaskTable, note: str = "") -> events.Gate:
    """Whether the table is right, before the first task starts; of a long one it names the beginning."""
    rows = [f"{task.id} (wave {task.wave}, {task.mode})" for task in islice(tasks.plan.values(), LISTED)]
    rest = len(tasks.plan) - len(rows)
    listed = ", ".join(rows) + (f", and {rest} more in {session.folder}/tasks.csv" if rest else "")
    return events.Gate(kind=GateKind.plan, question=f"Run these tasks? {listed}{note}", choices=tuple(PlanChoice))


def completion_choices(*, failures: bool) -> tuple[str, ...]:
    """What is offered for a finished session, the recommended choice first; retry only after failures."""
    return tuple(choice for choice in CompletionChoice if failures or choice is not CompletionChoice.retry)
