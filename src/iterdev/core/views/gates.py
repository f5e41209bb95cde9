"""A question as every surface shows it: what it is about, and what each choice does."""

from collections.abc import Iterator, Mapping
from itertools import islice

from msgspec import Struct

from iterdev.core.formatting import one_line
from iterdev.core.limits.budget import figures
from iterdev.core.results import Usage
from iterdev.core.session.events import Gate
from iterdev.core.session.gates import (
    NEGATIVE,
    CompletionChoice,
    GateKind,
    GoOnChoice,
    PackageChoice,
    PlanChoice,
    WaveChoice,
    meant,
)
from iterdev.core.session.state import State
from iterdev.core.settings import BUDGETS
from iterdev.core.types import TaskKind
from iterdev.core.views.team import TeamViews

LISTED = 50
"""Tasks that a question names at most."""
EDIT, DIFF = "edit", "diff"
ACTIONS: Mapping[str, tuple[str, ...]] = {GateKind.plan: (EDIT,)}
"""What can be done in a terminal before the question is answered."""

GO_ON: Mapping[str, str] = {
    GoOnChoice.go_on: "Continue as planned",
    GoOnChoice.stop: "End the session here; what landed stays",
}
DESCRIPTIONS: Mapping[str, Mapping[str, str]] = {
    GateKind.plan: {
        PlanChoice.approve: "Accept the plan and start",
        EDIT: "Edit tasks.csv in your editor, then see the plan again",
        PlanChoice.reject: "Abort: nothing is run",
    },
    GateKind.wave: {
        WaveChoice.abort: "Continue without them; tasks that depend on them are skipped",
        WaveChoice.retry: "Run them again",
    },
    GateKind.budget: {GoOnChoice.stop: "Start nothing more", GoOnChoice.go_on: "Continue without a budget"},
    GateKind.packages: {
        PackageChoice.override: "Continue without them",
        PackageChoice.recheck: "Check again, after you have installed them",
    },
    GateKind.consensus: GO_ON,
    GateKind.capability: GO_ON,
    GateKind.completion: {
        DIFF: "See the change",
        CompletionChoice.accept: "Merge the work into your branch",
        CompletionChoice.archive: "Archive the session and remove its worktrees; its branch stays",
        CompletionChoice.keep: "Keep the session for follow-up work or inspection",
        CompletionChoice.export: "Copy the results to a folder, then archive",
        CompletionChoice.retry: "Run the failed tasks again",
    },
}
UNRECOMMENDED = frozenset({*NEGATIVE, PackageChoice.override})
"""Choices that are taken if there is no user, and are not recommendations."""


class GateView(Struct, frozen=True, kw_only=True):
    id: str
    kind: str
    about: str
    """What it is about, in a word or two: a task, a wave, the session."""
    opened_at: float
    question: str
    choices: tuple[str, ...]
    """The first one is the default."""
    listed: int
    """How many of the choices are worth a line of their own; the others are variants of the first."""
    details: tuple[str, ...] = ()
    """What the question is about, one line each."""
    descriptions: Mapping[str, str] = {}
    recommended: bool = False
    """The default is a recommendation."""
    actions: tuple[str, ...] = ()
    """What can be done in a terminal before answering; they come after the first choice."""

    @property
    def default(self) -> str:
        return self.choices[0]

    @property
    def options(self) -> tuple[str, ...]:
        """What a person in a terminal can say."""
        return self.choices[0], *self.actions, *self.choices[1:]

    def meant(self, word: str) -> str | None:
        """The option that a person means by a word."""
        return meant(self.options, word)


def gate_view(gate: Gate, team: TeamViews, state: State, *, actions: tuple[str, ...] = ()) -> GateView:
    return GateView(
        id=gate.id,
        kind=gate.kind,
        about=_about(gate, state),
        # The question at the end of a run is in no journal.
        opened_at=state.gates.opened_at.get(gate.id, state.updated_at),
        question=gate.question,
        choices=gate.choices,
        listed=team.listed_choices(gate),
        details=tuple(_details(gate, state)),
        descriptions={**DESCRIPTIONS.get(gate.kind, {}), **team.choice_descriptions(gate, state)},
        recommended=gate.choices[0] not in UNRECOMMENDED,
        actions=actions or ACTIONS.get(gate.kind, ()),
    )


def _about(gate: Gate, state: State) -> str:
    if not gate.subject:
        return "the session"
    return gate.subject if gate.subject in state.tasks.plan else f"{gate.kind} {gate.subject}"


def gate_document(gate: GateView) -> dict[str, object]:
    """What `--json` prints of a question."""
    facts = ("id", "kind", "about", "opened_at", "question", "details", "choices", "default")
    return {name: getattr(gate, name) for name in facts}


def _details(gate: Gate, state: State) -> Iterator[str]:
    match gate.kind:
        case GateKind.plan:
            yield from _plan(state)
        case GateKind.wave:
            yield from islice(_errors(state, int(gate.subject)), LISTED)
        case _:
            pass


def _errors(state: State, wave: int) -> Iterator[str]:
    for task, progress in state.tasks.rows():
        if task.wave == wave and progress.error:
            yield f"{task.id}: {one_line(progress.error)}"


def _plan(state: State) -> Iterator[str]:
    """The tasks, where the table is, and what is known of the cost; of a long table only the beginning."""
    rows = [("wave", "task", "role", "agent", "mode", "title")]
    for task in islice(state.tasks.plan.values(), LISTED):
        agent = "-" if task.kind is TaskKind.decision else state.agents.chain(task.role, task.agent)[0]
        rows.append((str(task.wave), task.id, task.role, agent, task.mode, task.title))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        yield "  ".join([*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), row[-1]])
    if len(state.tasks.plan) > LISTED:
        yield f"and {len(state.tasks.plan) - LISTED} more"
    yield f"Table: {state.session.folder}/tasks.csv"
    spent = state.spending.total
    yield f"Spent so far: {figures(spent) if spent != Usage() else 'nothing'}. {_budget(state)}"


def _budget(state: State) -> str:
    known = ((name, getattr(state.policy, name)) for name in BUDGETS)
    limits = [f"{name.replace('_', ' ')} {value:g}" for name, value in known if value is not None]
    return f"Limits: {', '.join(limits)}." if limits else "No budget is set ([run] budget_usd in iterdev.toml)."
