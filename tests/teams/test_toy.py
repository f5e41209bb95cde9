"""The kernel runs a team that it does not know: whole sessions of the toy team, on both engines."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as chosen
from hypothesis import strategies as st
from tests.core.simulator import AGENTS, History, World
from tests.teams.toy import LIMIT, TOY, Check, Checked

from iterdev.core.policy import Policy
from iterdev.core.prompts import PromptContext, render
from iterdev.core.results import Result, Usage
from iterdev.core.rules.decide import decide
from iterdev.core.rules.replay_check import compare
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import Event, RowEdit, Session, SessionStarted, TableEdited
from iterdev.core.session.fold import replay
from iterdev.core.session.tasks import Task
from iterdev.core.types import Engine, Phase, SessionId, Status
from iterdev.core.views.report import report
from iterdev.core.views.session import session_view
from iterdev.store.journal import EventCodec
from iterdev.store.session_folder import json_records, tasks_csv
from iterdev.teams.contract import Team

CODEC = EventCodec({TOY.name: TOY})


def a_beginning(chance: Random, engine: Engine, *, auto: bool) -> list[Event]:
    facts = {"engine": engine, "requirement": "Write a poem", "folder": ".workflow/toy", "base": "b", "branch": "main"}
    agents = {role: chance.choice(AGENTS) for role in TOY.workers}
    limits = Policy(auto=auto, concurrency=chance.randint(1, 3), agents=agents, fallbacks={"claude": "codex"})
    return [SessionStarted(Session(id=SessionId("toy-1"), team=TOY.name, **facts), limits)]


def work(chance: Random, task: Task) -> Success:
    if task.role == "checker":
        result = Check(id=task.id, status="completed", findings="read", again=chance.random() < 0.6)
        return Success(result=result, usage=Usage(input_tokens=3))
    written = Result(id=task.id, status="completed", findings="wrote")
    return Success(result=written, commit=f"commit {task.id}", changed=("a.py",), usage=Usage(input_tokens=5))


@st.composite
def histories(draw: st.DrawFn) -> History:
    chance, engine = Random(draw(st.integers(0, 2**32))), draw(st.sampled_from(Engine))
    beginning = a_beginning(chance, engine, auto=draw(st.booleans()))
    return World(chance, TOY, beginning, work, edits=2, rollbacks=2, talks=draw(st.sampled_from((0, 10)))).live()


def holds(examples: int = 100) -> chosen:
    return chosen(max_examples=examples, derandomize=True, deadline=None, database=None)


def simple(engine: Engine, *verdicts: bool) -> History:
    """A session without any trouble, in which the checker says this one check after the other."""
    left = iter(verdicts)

    def calm(_: Random, task: Task) -> Success:
        if task.role == "checker":
            return Success(result=Check(id=task.id, status="completed", findings="read", again=next(left)))
        return work(Random(0), task)

    return World(Calm(), TOY, a_beginning(Random(0), engine, auto=True), calm).live()


class Calm(Random):
    """Chance that never lets anything go wrong."""

    def random(self) -> float:
        return 0.99


def test_the_toy_team_has_all_that_a_team_is_asked_for() -> None:
    asked = {name for name in dir(Team) if not name.startswith("_")}

    assert [name for name in sorted(asked) if not hasattr(TOY, name)] == []


@holds(300)
@given(histories())
def test_every_session_of_the_toy_team_ends(history: History) -> None:
    assert history.ending == "over", history
    assert len(history.state.tasks.of_role("checker")) <= LIMIT, history


@holds()
@given(histories())
def test_the_journal_of_the_toy_team_is_read_back_and_folds_to_the_same_state(history: History) -> None:
    read = [type(entry)(entry.seq, entry.at, CODEC.decode(CODEC.encode(entry.event))) for entry in history.entries]

    assert read == history.entries
    assert replay(read, TOY) == history.state


@holds()
@given(histories())
def test_every_decision_about_the_toy_team_can_be_made_again(history: History) -> None:
    for step in history.steps[:: max(1, len(history.steps) // 10)]:
        again = replay([entry for entry in history.entries if entry.seq <= step.state.seq], TOY)
        assert again
        assert decide(again, TOY, step.now) == step.commands, history
    assert compare(history.entries, TOY).difference is None, history


@pytest.mark.parametrize("engine", Engine)
@pytest.mark.parametrize(
    ("verdicts", "tasks"),
    [
        ((False,), ["WRITE-001", "CHECK-001"]),
        ((True, False), ["WRITE-001", "CHECK-001", "WRITE-002", "CHECK-002"]),
    ],
)
def test_the_toy_team_writes_again_when_its_checker_says_so(
    engine: Engine, verdicts: tuple[bool, ...], tasks: list[str]
) -> None:
    history = simple(engine, *verdicts)

    assert list(history.state.tasks.plan) == tasks
    assert history.state.lifecycle.phase is Phase.completed
    assert {progress.status for progress in history.state.tasks.progress.values()} == {Status.completed}
    assert [event.again for event in history.seen(Checked)] == list(verdicts)
    assert history.state.branch.tip.split() == ["b", *(task for task in tasks if task.startswith("WRITE"))]


@pytest.mark.parametrize("engine", Engine)
def test_views_prompts_and_files_of_the_toy_team_need_nothing_of_another_team(engine: Engine) -> None:
    history = simple(engine, True, False)
    state = history.state
    row = state.tasks.plan[next(iter(state.tasks.plan))]
    context = PromptContext(board="discoveries.ndjson")
    parts, schema = TOY.prompt_parts(state, row, context), TOY.result_schema(row.role)

    prompt = render(state, row, TOY.roles[row.role], context, parts, schema)
    rows = tasks_csv.parse(tasks_csv.table(state, TOY), TOY)

    assert "You are the writer." in prompt
    assert session_view(state, TOY).phase is Phase.completed
    assert report(state, TOY).startswith("# Report\n")
    assert "session.json" in json_records.records(state, TOY)
    assert [row.edit.task for row in rows] == list(state.tasks.plan.values())


def test_a_person_may_edit_the_table_of_the_toy_team() -> None:
    history = simple(Engine.beat, False)
    rows = tasks_csv.parse(tasks_csv.table(history.state, TOY), TOY)
    edits = tuple(RowEdit(task=row.edit.task, status=Status.pending) for row in rows)
    entry = type(history.entries[0])(history.state.seq + 1, 2000.0, TableEdited(edits))

    state = replay([*history.entries, entry], TOY)

    assert state
    assert list(state.tasks.ready) == ["WRITE-001"]
