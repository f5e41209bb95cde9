"""Gates: questions to the user, and their answers."""

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.draft import without
from iterdev.core.session import events

YES = frozenset({"y", "yes", "ok", "accept"})
NO = frozenset({"n", "no", "abort"})
MOST_DIGITS = 5
"""Of the number of an option; a longer number is none."""


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
    accept = "accept"
    archive = "archive"
    keep = "keep"
    export = "export"
    retry = "retry"


class Gates(Struct, frozen=True, kw_only=True):
    open: Mapping[str, events.Gate] = {}
    opened_at: Mapping[str, float] = {}
    """Since when each of them is open."""
    answers: Mapping[str, events.Answer] = {}

    def answer(self, gate: str) -> str | None:
        answer = self.answers.get(gate)
        return answer.choice if answer else None

    def chosen(self, kind: str, choice: str) -> events.Gate | None:
        """The first gate of a kind that was answered with this choice."""
        found = (one.gate for one in self.answers.values() if one.gate.kind == kind and one.choice == choice)
        return next(found, None)


def evolve(part: Gates, event: events.GateEvent | events.RollbackStarted, at: float = 0) -> Gates:
    match event:
        case events.GateOpened(gate):
            return Gates(
                open={**part.open, gate.id: gate},
                opened_at={**part.opened_at, gate.id: at},
                answers=without(part.answers, gate.id),
            )
        case events.GateAnswered(gate, choice):
            if gate not in part.open:
                return part
            answered = events.Answer(part.open[gate], choice)
            return Gates(
                open=without(part.open, gate),
                opened_at=without(part.opened_at, gate),
                answers={**part.answers, gate: answered},
            )
        case events.AnswerApplied(gate):
            return replace(part, answers=without(part.answers, gate))
        case events.RollbackStarted(answers=answers):
            return Gates(answers=answers)


NEGATIVE = (PlanChoice.reject, WaveChoice.abort, GoOnChoice.stop, CompletionChoice.keep)
"""The choices that "no" stands for."""


def meant(options: Sequence[str], word: str) -> str | None:
    """The option that a person means by a word: itself, its number, its beginning, yes or no; None if it is unclear."""
    word = word.strip().lower()
    if word in options:
        return word
    if word.isdecimal() and len(word) < MOST_DIGITS and 0 < int(word) <= len(options):
        return options[int(word) - 1]
    begun = [option for option in options if word and option.startswith(word)]
    if len(begun) == 1:
        return begun[0]
    negative = [option for option in options if option in NEGATIVE]
    if word in YES:
        return next((option for option in options if option not in negative), None)
    return negative[0] if word in NO and negative else None


def plan_gate(note: str = "") -> events.Gate:
    """Whether the table is right, before the first task starts."""
    return events.Gate(kind=GateKind.plan, question=f"Run these tasks?{note}", choices=tuple(PlanChoice))


def completion_choices(*, succeeded: bool, failures: bool, acceptable: bool) -> tuple[str, ...]:
    """What is offered for a finished session, the recommended choice first.

    There is nothing to retry without failures, and nothing to accept without a change. Work that is not known to be
    good is not recommended.
    """
    left_out = {
        *(() if failures else (CompletionChoice.retry,)),
        *(() if acceptable else (CompletionChoice.accept,)),
    }
    first = () if succeeded else (CompletionChoice.retry, CompletionChoice.keep)
    return tuple(choice for choice in dict.fromkeys((*first, *CompletionChoice)) if choice not in left_out)
