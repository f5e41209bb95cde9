"""Which tasks start now: free places, budgets, and agents whose providers answer."""

from collections.abc import Collection, Iterator, Mapping
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.limits import budget, providers
from iterdev.core.limits.providers import Choice
from iterdev.core.session.events import AnswerApplied, Event, Gate, GateOpened, PolicyChanged, TaskFailed
from iterdev.core.session.gates import GateKind, GoOnChoice
from iterdev.core.session.state import State
from iterdev.core.settings import BUDGETS
from iterdev.core.types import Role, TaskId


class Record(Struct, frozen=True):
    """Something that holds from now on, and needs no effect but its place in the journal."""

    events: tuple[Event, ...]


class Start(Struct, frozen=True, kw_only=True):
    task: TaskId
    number: int
    limit: float
    agent: str


class Land(Struct, frozen=True):
    task: TaskId


class RunLandingTest(Struct, frozen=True):
    """Tests the work of tasks that wait to land, merged into the branch as far as git can."""

    tasks: tuple[TaskId, ...]


class Cancel(Struct, frozen=True):
    task: TaskId


class Wait(Struct, frozen=True):
    until: float


Command = Record | Start | Land | RunLandingTest | Cancel | Wait


def starts(state: State, in_order: Iterator[TaskId], now: float, limit: float) -> tuple[Command, ...]:
    """As many starts as there are free places, in the order of the table; or the time to wait for."""
    places = state.policy.concurrency - len(state.attempts.running)
    if places <= 0:
        return ()
    held_back = state.providers.pauses or any(getattr(state.policy, name) is not None for name in BUDGETS)
    candidates = list(in_order if held_back else islice(in_order, places))
    spent = {task: state.tasks.progress[task].usage for task in candidates}
    unpaid = budget.over_budget(state.policy, state.spending, spent)
    if unpaid and len(unpaid) == len(candidates):
        return _without_budget(state, {task: unpaid[task] for task in state.tasks.ready if task in unpaid})
    choices = agent_choices(state, [task for task in candidates if task not in unpaid], now)
    possible = [task for task, choice in choices.items() if choice.not_before <= now]
    if possible:
        return tuple(
            Start(task=task, number=state.tasks.progress[task].number + 1, limit=limit, agent=choices[task].agent)
            for task in possible[:places]
        )
    return (Wait(min(choice.not_before for choice in choices.values())),) if choices else ()


def agent_choices(state: State, tasks: Collection[TaskId], now: float) -> dict[TaskId, Choice]:
    """The agent for each task; tasks that do not differ in what matters here are considered once."""
    known: dict[tuple[Role, str, tuple[str, ...]], Choice] = {}
    chosen: dict[TaskId, Choice] = {}
    for task in tasks:
        row, replaced = state.tasks.plan[task], state.tasks.progress[task].replaced_agents
        case = row.role, row.agent, replaced
        if case not in known:
            chain = state.agents.chain(row.role, row.agent)
            known[case] = providers.choose(state.providers, state.agents, chain, replaced, now)
        chosen[task] = known[case]
    return chosen


def _without_budget(state: State, unpaid: Mapping[TaskId, str]) -> tuple[Command, ...]:
    """Lets running agents finish, then asks whether to spend more; in auto mode, the rest fails."""
    if state.attempts.running:
        return ()
    answer = state.gates.answer(GateKind.budget)
    if state.policy.auto or answer == GoOnChoice.stop:
        return (Record(tuple(TaskFailed(task, why) for task, why in unpaid.items())),)
    if answer == GoOnChoice.go_on:
        unlimited = replace(state.policy, **dict.fromkeys(BUDGETS))
        return (Record((AnswerApplied(GateKind.budget), PolicyChanged(unlimited))),)
    why = "; ".join(dict.fromkeys(unpaid.values()))
    question = f"Stop here, or go on without a budget? {why}"
    choices = (GoOnChoice.stop, GoOnChoice.go_on)
    return (Record((GateOpened(Gate(kind=GateKind.budget, question=question, choices=choices)),)),)
