"""Sessions of several sprints: how many, how one went, and how the next one starts."""

import json

import msgspec
import pytest
from tests.core.conftest import Story, a_design, done, measured, review, task

from iterdev.core.collaboration.feedback import Feedback, FeedbackGiven
from iterdev.core.collaboration.tech_debt import Debt, DebtIdentified, DebtMoved, DebtStatus, Effort
from iterdev.core.formatting import counted
from iterdev.core.policy import DebtRule, Policy
from iterdev.core.session import events
from iterdev.core.session.events import Archived, Reopened
from iterdev.core.types import Engine, Phase, Severity, Status, TaskId
from iterdev.core.views.report import report
from iterdev.store.session_folder.json_records import records
from iterdev.teams.development import events as team_events
from iterdev.teams.development import sprints
from iterdev.teams.development.prompts import NOTHING_OF_IT
from iterdev.teams.development.results import Design, Milestone, WorkItem
from iterdev.teams.development.roles import Pipeline, Role, fields
from iterdev.teams.development.sprints import SprintChoice
from iterdev.teams.development.team import DEVELOPMENT

ENGINES = pytest.mark.parametrize("engine", list(Engine))


def designed(*titles: str, items: int = 2) -> Design:
    """A design whose items belong to the first of its milestones."""
    tasks = tuple(WorkItem(id=f"task-{number}", title="t") for number in range(1, items + 1))
    milestones = tuple(Milestone(title=title) for title in titles)
    return msgspec.structs.replace(a_design(), tasks=tasks, milestones=milestones)


def begun(engine: Engine, *, auto: bool = True) -> Story:
    story = Story(engine=engine, pipeline=Pipeline.multi_sprint, auto=True)
    story.goes_on()
    if not auto:
        story.happens(events.PolicyChanged(Policy(auto=False, agents=story.state.policy.agents)))
        story.goes_on()
        story.happens(events.GateAnswered("plan", "approve"))
    return story


def play(story: Story, design: Design, *, score: float = 9, until: int = 99) -> None:
    """Lets every agent do its work, until nothing is left to start or a later sprint would begin."""
    while names := story.goes_on():
        if fields(story.row(names[0])).sprint > until:
            return
        for name in names:
            match story.row(name).role:
                case Role.architect:
                    story.does(name, done("designed", design=design))
                case Role.reviewer:
                    story.reviews(name, review(score))
                case Role.tester:
                    story.does(name, done("tested", verification=measured(1.0)))
                case _:
                    story.does(name)


def ids(story: Story, sprint: int) -> list[str]:
    return [task.id for task in story.state.tasks.plan.values() if fields(task).sprint == sprint]


@pytest.mark.requirement("R32", "R33", "R34", "R35")
def test_the_first_sprint_ends_with_the_window_behind_its_last_developer() -> None:
    story = begun(Engine.wave)

    assert ids(story, 1) == ["DESIGN-001", "DEV-001", "DEV-002", "VERIFY-001", "REVIEW-001", "GC-CHECK-001"]
    assert story.row("DEV-002").deps == ("DEV-001",)
    assert story.row("VERIFY-001").deps == story.row("REVIEW-001").deps == ("DEV-002",)
    assert story.row("GC-CHECK-001").deps == ("REVIEW-001",)


@pytest.mark.requirement("R36")
@ENGINES
def test_no_task_of_a_sprint_exists_before_the_one_before_is_finished(engine: Engine) -> None:
    story = begun(engine)
    seen: list[bool] = []
    while (names := story.goes_on()) and fields(story.row(names[0])).sprint == 1:
        seen.append(bool(ids(story, 2)))
        for name in names:
            if story.row(name).role is Role.architect:
                story.does(name, done("", design=designed("one", "two")))
            elif story.row(name).role is Role.reviewer:
                story.reviews(name, review(9))
            else:
                story.does(name)

    assert seen
    assert not any(seen)
    assert ids(story, 2)


@ENGINES
def test_a_later_sprint_goes_from_a_refined_design_to_its_review(engine: Engine) -> None:
    story = begun(engine)

    play(story, designed("one", "two"), score=7.5)

    check = ["GC-CHECK-002"] if engine is Engine.wave else []
    assert ids(story, 2) == ["DESIGN-002", "DEV-003", "VERIFY-002", "REVIEW-002", *check]
    assert story.row("DESIGN-002").wave > max(
        task.wave for task in story.state.tasks.plan.values() if fields(task).sprint == 1
    )
    assert story.row("DEV-003").context_from == ("DESIGN-002",)
    assert "design/design-002.md" in story.row("DEV-003").description
    assert story.state.lifecycle.phase is Phase.completed


@ENGINES
def test_there_are_as_many_sprints_as_milestones(engine: Engine) -> None:
    story = begun(engine)
    play(story, designed("one", "two", "three"), until=1)
    assert sprints.total(story.state) == 3

    play(story, designed(), score=7)

    assert sorted(story.team.sprints) == [1, 2, 3]
    goals = [
        event.goal for event in story.seen(team_events.SprintStarted) if isinstance(event, team_events.SprintStarted)
    ]
    assert goals == ["two", "three"]


def test_a_later_design_does_not_add_sprints() -> None:
    story = begun(Engine.beat)
    play(story, designed("one", "two"), until=1)

    play(story, designed("two", "three", "four"))

    assert sorted(story.team.sprints) == [1, 2]


@pytest.mark.requirement("R81", "R84")
@ENGINES
def test_how_a_sprint_went_is_recorded_before_the_next_one_is_made(engine: Engine) -> None:
    story = begun(engine)

    play(story, designed("one", "two"), until=1)

    kinds = [type(event) for event in story.seen(team_events.SprintEnded, events.TasksAdded, team_events.SprintStarted)]
    (history,) = json.loads(records(story.state, DEVELOPMENT)[".msg/meta.json"])["sprint_history"]
    planned = 6 if engine is Engine.wave else 5
    assert kinds == [
        *(events.TasksAdded, team_events.SprintEnded),
        *(team_events.SprintStarted, events.TasksAdded),
    ]
    assert (history["sprint_id"], history["velocity"], history["expected_velocity"]) == ("sprint-1", planned, planned)
    assert [line.partition(":")[0] for line in history["what_worked"]] == ["DEV-001", "DEV-002"]


@pytest.mark.requirement("R80")
@ENGINES
def test_the_next_sprint_waits_for_the_user(engine: Engine) -> None:
    story = begun(engine, auto=False)
    play(story, designed("one", "two"))
    assert list(story.state.gates.open) == ["sprint-1"]
    assert not ids(story, 2)

    story.happens(events.GateAnswered("sprint-1", SprintChoice.go_on))

    assert story.goes_on() == ["DESIGN-002"]


def test_a_session_that_is_stopped_between_two_sprints_is_over() -> None:
    story = begun(Engine.beat, auto=False)
    play(story, designed("one", "two"))

    story.happens(events.GateAnswered("sprint-1", SprintChoice.stop))
    story.goes_on()

    assert story.state.lifecycle.phase is Phase.completed
    assert not ids(story, 2)


@pytest.mark.requirement("R82")
@pytest.mark.parametrize(
    ("velocity", "score", "allowed"),
    [(6, 8.0, True), (7, 9.0, True), (5, 9.0, False), (6, 7.9, False), (6, None, False)],
)
def test_a_plain_sprint_may_follow_only_one_that_went_well(
    velocity: int, score: float | None, *, allowed: bool
) -> None:
    record = team_events.SprintRecord(
        pipeline=Pipeline.multi_sprint, expected=6, velocity=velocity, mean_score=score, rounds=0
    )

    assert sprints.may_downgrade(record, team_events.Thresholds()) is allowed


def test_a_sprint_after_one_that_went_well_has_no_controller() -> None:
    story = begun(Engine.wave)

    play(story, designed("one", "two"), score=9)

    assert ids(story, 2) == ["DESIGN-002", "DEV-003", "VERIFY-002", "REVIEW-002"]
    assert fields(story.row("DEV-003")).pipeline is Pipeline.sprint


@pytest.mark.requirement("R82")
def test_the_user_is_offered_the_plain_sprint_only_when_it_is_allowed() -> None:
    offered = {}
    for score in (7.0, 9.0):
        story = begun(Engine.beat, auto=False)
        play(story, designed("one", "two"), score=score)
        offered[score] = SprintChoice.downgrade in story.state.gates.open["sprint-1"].choices

    assert offered == {7.0: False, 9.0: True}


@pytest.mark.requirement("R83")
@pytest.mark.parametrize(
    ("planned", "completed", "slow"),
    [
        (4, 0, True),
        (4, 1, True),
        (5, 2, True),
        (6, 2, True),
        (4, 2, False),
        (6, 3, False),
        (5, 3, False),
        (3, 3, False),
    ],
)
def test_a_sprint_is_slow_below_half_of_what_was_planned(planned: int, completed: int, *, slow: bool) -> None:
    rows = [task(f"DEV-{number:03d}", pipeline=Pipeline.multi_sprint) for number in range(1, planned + 1)]
    story = Story(*rows, engine=Engine.beat, pipeline=Pipeline.multi_sprint)
    for number, row in enumerate(rows):
        story.does(row.id) if number < completed else story.fails(row.id)
    story.goes_on()

    done = counted(completed, "task")
    alarm = f"sprint-1 completed {done}, {planned} planned; consider a smaller scope for the next one"
    assert (alarm in story.state.warnings) == slow
    assert any("smaller scope" in text for text in story.state.warnings) == slow


@pytest.mark.requirement("R83")
def test_a_slow_sprint_is_reported_with_advice() -> None:
    story = begun(Engine.beat)
    story.does(story.goes_on()[0], done("", design=designed("one", "two")))
    story.fails(story.goes_on()[0])
    story.goes_on()

    assert "consider a smaller scope" in story.state.warnings[-1]
    assert story.state.lifecycle.phase is Phase.completed
    assert not ids(story, 2)


def test_trying_again_what_failed_ends_the_sprint_again() -> None:
    story = begun(Engine.beat)
    story.does(story.goes_on()[0], done("", design=designed("one", "two")))
    story.fails(story.goes_on()[0])
    story.goes_on()

    lost = story.team.sprints[1].unsuccessful
    story.happens(events.TasksReset(lost), events.EngineStarted(1, story.state.branch.tip))
    play(story, designed("one", "two"), until=1)

    assert story.team.sprints[1].unsuccessful == ()
    assert ids(story, 2)


@ENGINES
def test_a_long_breakdown_gets_more_developers_before_the_window(engine: Engine) -> None:
    story = begun(engine)
    story.does(story.goes_on()[0], done("", design=designed(items=14)))

    story.goes_on()

    assert [task for task in ids(story, 1) if task.startswith("DEV")] == ["DEV-001", "DEV-002", "DEV-003"]
    assert story.row("DEV-003").deps == ("DEV-002",)
    assert story.row("VERIFY-001").deps == story.row("REVIEW-001").deps == ("DEV-003",)
    waves = [story.row(name).wave for name in ("DEV-002", "DEV-003", "VERIFY-001")]
    assert waves == [3, 4, 5]


def test_each_developer_is_told_the_items_of_its_own_row() -> None:
    story = begun(Engine.beat)
    story.does(story.goes_on()[0], done("", design=designed(items=4)))

    texts = [story.prompt(name) for name in ("DEV-001", "DEV-002")]

    assert [["task-1:" in text, "task-2:" in text, "task-3:" in text, "task-4:" in text] for text in texts] == [
        [True, True, False, False],
        [False, False, True, True],
    ]


def titled(*titles: str) -> Design:
    tasks = tuple(WorkItem(id=f"task-{number}", title=title) for number, title in enumerate(titles))
    return msgspec.structs.replace(a_design(), tasks=tasks)


@ENGINES
def test_a_developers_task_has_the_titles_of_its_items_once_the_design_is_there(engine: Engine) -> None:
    story = begun(engine)
    before = [story.row(name).title for name in ("DEV-001", "DEV-002")]
    story.does(
        "DESIGN-001", done("", design=titled("Add items", "Take items", "Count\nitems", "Print them", "Sell them"))
    )
    story.goes_on()

    after = [story.row(name).title for name in ("DEV-001", "DEV-002")]

    assert before == ["Implement the design, part 1", "Implement the design, part 2"]
    assert after == ["Add items (+2 more)", "Print them (+1 more)"]
    assert sprints.commit_body(story.state, story.row("DEV-001")) == ("- Add items", "- Take items", "- Count items")


def test_a_single_item_gives_its_whole_title_and_a_long_one_is_cut() -> None:
    story = Story(pipeline=Pipeline.sprint)
    story.goes_on()
    story.does(
        "DESIGN-001", done("", design=titled("Add percentage discounts to total() and to the printed receipts, too"))
    )
    story.goes_on()

    assert story.row("DEV-001").title == "Add percentage discounts to total() and to the printed rece…"
    assert sprints.commit_body(story.state, story.row("DEV-001")) == ()


@pytest.mark.parametrize("title", ["", " \n "])
def test_an_item_without_a_title_is_called_by_its_id(title: str) -> None:
    story = Story(pipeline=Pipeline.sprint)
    story.goes_on()
    story.does("DESIGN-001", done("", design=titled(title)))
    story.goes_on()

    assert story.row("DEV-001").title == "task-0"


def test_a_title_that_a_person_wrote_is_kept_when_the_design_is_there() -> None:
    story = Story(pipeline=Pipeline.sprint)
    story.goes_on()
    mine = msgspec.structs.replace(story.row("DEV-001"), title="My own words")
    story.edits(events.RowEdit(task=mine, status=Status.pending))
    story.does("DESIGN-001", done("", design=titled("Add items")))
    story.goes_on()

    assert story.row("DEV-001").title == "My own words"


def test_each_developer_has_to_leave_the_files_of_its_own_items() -> None:
    story = begun(Engine.beat)
    items = tuple(WorkItem(id=f"task-{number}", title="t", files=(f"{number}.py",)) for number in range(4))
    story.does(story.goes_on()[0], done("", design=msgspec.structs.replace(a_design(), tasks=items)))

    planned = [sprints.planned_files(story.state, story.row(name)) for name in ("DEV-001", "DEV-002", "VERIFY-001")]

    assert planned == [("0.py", "1.py"), ("2.py", "3.py"), ()]


def in_milestones() -> Design:
    """One item in the first sprint, two in the second."""
    tasks = tuple(WorkItem(id=name, title=f"item {name}") for name in "abc")
    milestones = (Milestone(title="one", tasks=("a",)), Milestone(title="two", tasks=("b", "c")))
    return msgspec.structs.replace(a_design(), tasks=tasks, milestones=milestones)


def told(story: Story, name: str) -> list[str]:
    """The items of the breakdown that a prompt names."""
    text = story.prompt(name)
    return [item for item in "abc" if f"- {item}: item {item}" in text]


@pytest.mark.requirement("R33")
@ENGINES
def test_a_developer_for_whom_nothing_is_left_is_not_asked(engine: Engine) -> None:
    story = begun(engine)
    story.does(story.goes_on()[0], done("", design=in_milestones()))
    assert story.goes_on() == ["DEV-001"]
    assert [told(story, name) for name in ("DEV-001", "REVIEW-001")] == [["a"], ["a"]]

    story.does("DEV-001")

    assert story.goes_on() == ["VERIFY-001", "REVIEW-001"]
    assert story.status("DEV-002") == "completed"
    assert story.state.tasks.progress[TaskId("DEV-002")].findings == "nothing of the breakdown was left to do"
    assert "DEV-002" in story.state.messages.sent[-1].summary


@pytest.mark.requirement("R33")
def test_a_row_that_a_person_put_beside_the_others_is_asked_and_told_that_nothing_of_the_breakdown_is_its_own() -> None:
    story = begun(Engine.beat)
    beside = msgspec.structs.replace(story.row("DEV-002"), deps=(TaskId("DESIGN-001"),))
    story.happens(events.TableEdited((events.RowEdit(task=beside, status=Status.pending),)))
    story.does(story.goes_on()[0], done("", design=in_milestones()))

    assert story.goes_on() == ["DEV-001", "DEV-002"]
    assert told(story, "DEV-002") == []
    assert NOTHING_OF_IT in story.prompt("DEV-002")


@pytest.mark.requirement("R33")
def test_a_single_sprint_does_the_whole_breakdown_whatever_its_milestones() -> None:
    story = Story(pipeline=Pipeline.sprint)
    story.does(story.goes_on()[0], done("", design=in_milestones()))

    assert told(story, "DEV-001") == ["a", "b", "c"]
    assert sprints.total(story.state) == 1


@pytest.mark.requirement("R43")
def test_a_fix_and_a_verification_that_are_both_ready_are_started_together() -> None:
    story = begun(Engine.beat)
    story.does(story.goes_on()[0], done("", design=designed()))
    story.does(story.goes_on()[0])
    story.does(story.goes_on()[0])
    assert story.goes_on() == ["VERIFY-001", "REVIEW-001"]
    story.reviews("REVIEW-001", review(3))

    assert story.goes_on() == ["VERIFY-001", "DEV-fix-1"]


@pytest.mark.requirement("R44")
def test_a_sprint_is_not_over_while_a_fix_round_is_open() -> None:
    story = begun(Engine.beat)
    story.does(story.goes_on()[0], done("", design=designed("one", "two")))
    story.does(story.goes_on()[0])
    story.does(story.goes_on()[0])
    story.verifies("VERIFY-001", 1.0)
    story.reviews("REVIEW-001", review(3))
    story.goes_on()
    story.does("DEV-fix-1")
    assert story.goes_on() == ["REVIEW-002"]
    assert not story.team.sprints

    story.reviews("REVIEW-002", review(9))
    story.goes_on()

    assert 1 in story.team.sprints


def test_a_table_by_hand_has_no_further_sprints() -> None:
    story = begun(Engine.beat)
    by_hand = msgspec.structs.replace(story.state.session, by_hand=True)
    state = msgspec.structs.replace(story.state, session=by_hand)

    assert sprints.transition(state) == ()


@pytest.mark.requirement("R37")
def test_ids_are_unique_over_all_sprints() -> None:
    story = begun(Engine.wave)

    play(story, designed("one", "two", "three"), score=7)

    names = [TaskId(task) for event in story.seen(events.TasksAdded) for task in (row.id for row in event.tasks)]
    assert len(names) == len(set(names))


def owing(story: Story, *, since: int = 1) -> None:
    item = Debt(debt_id="TD-1", description="no index", severity=Severity.high, detection_date=1, sprint=since)
    story.happens(DebtIdentified(item))


@pytest.mark.requirement("R139", "R143")
def test_the_architect_is_told_the_debt_by_its_rank_and_urgent_feedback() -> None:
    story = begun(Engine.beat)
    for name, severity in (("TD-1", Severity.low), ("TD-2", Severity.critical)):
        story.happens(DebtIdentified(Debt(debt_id=name, description="d", severity=severity, detection_date=1)))
    story.happens(
        FeedbackGiven(Feedback(feedback_id="FB-1", description="It is slow", severity=Severity.high, timestamp=1))
    )

    text = story.prompt("DESIGN-001")

    assert text.index("FB-1 [high] It is slow") < text.index("TD-2 [critical") < text.index("TD-1 [low")


@pytest.mark.parametrize("auto", [True, False])
def test_overdue_debt_is_talked_about_before_another_sprint(*, auto: bool) -> None:
    story = begun(Engine.beat)
    rule = DebtRule(severity=Severity.high, sprints=0)
    story.happens(events.PolicyChanged(Policy(auto=auto, debt=rule, agents=story.state.policy.agents)))
    story.goes_on()
    story.happens(events.GateAnswered("plan", "approve"))
    story.happens(
        DebtIdentified(Debt(debt_id="TD-1", description="no index", severity=Severity.high, detection_date=1, sprint=0))
    )

    play(story, designed("one", "two"))

    assert not ids(story, 2)
    assert any("no index" in warning for warning in story.state.warnings)
    if not auto:
        assert story.state.gates.open["sprint-1"].choices[0] == SprintChoice.stop


@pytest.mark.requirement("R143")
def test_debt_that_was_paid_back_is_noted_in_the_history_of_the_sprint() -> None:
    story = begun(Engine.beat)
    owing(story)
    story.happens(DebtMoved(debt_id="TD-1", status=DebtStatus.resolved, sprint=1))

    play(story, designed("one", "two"), until=1)

    assert "TD-1 paid back: no index" in story.team.sprints[1].worked


def test_a_session_that_was_stopped_asks_again_when_it_is_reopened() -> None:
    story = begun(Engine.wave, auto=False)
    play(story, designed("one", "two"))
    story.happens(events.GateAnswered("sprint-1", SprintChoice.stop))
    story.goes_on()
    stopped = story.state.lifecycle.phase
    story.happens(Archived(), Reopened(), *DEVELOPMENT.reopened(story.state))
    story.happens(events.EngineStarted(2, story.state.branch.tip))
    story.goes_on()

    assert stopped is Phase.completed
    assert list(story.state.gates.open) == ["sprint-1"]


def test_after_a_forced_convergence_no_plainer_sprint_is_offered() -> None:
    record = team_events.SprintRecord(
        pipeline=Pipeline.multi_sprint,
        expected=4,
        velocity=9,
        mean_score=9,
        rounds=3,
        unsuccessful=(),
        worked=(),
        failed=("convergence was forced",),
        learned=(),
    )

    assert not sprints.may_downgrade(record, team_events.Thresholds())


@pytest.mark.requirement("R143")
def test_the_architect_is_told_the_effort_of_debt_and_what_of_it_the_next_sprint_can_take_on() -> None:
    story = begun(Engine.beat)
    for age, effort in enumerate((Effort.large, Effort.large, Effort.small), 1):
        item = Debt(debt_id=f"TD-{age}", description="d", estimated_effort=effort, detection_date=age)
        story.happens(DebtIdentified(item))
    play(story, designed("one", "two"), until=1)

    text = story.prompt("DESIGN-002")

    assert sprints.capacity(story.state) == story.team.sprints[1].velocity == 5
    assert "- TD-1 [medium, code, effort large] d" in text
    assert "capacity of 5 (small 1, medium 2, large 4): TD-1, TD-3\n" in text


@pytest.mark.requirement("R143")
def test_debt_that_a_developer_pays_back_is_in_the_history_of_its_sprint_and_in_the_retrospective() -> None:
    story = begun(Engine.beat, auto=False)
    owing(story)
    story.does(story.goes_on()[0], done("", design=designed("one", "two")))
    asked = story.prompt("DEV-001")
    story.does(story.goes_on()[0], done("", resolved_debt=("TD-1",), tech_debt=("no cache",)))

    play(story, designed("one", "two"))

    line = "2 in all (1 high, 1 medium; 2 code), 1 open, 0 in progress"
    assert '"resolved_debt"' in asked
    assert "- TD-1: no index" in asked
    assert "TD-1 paid back: no index" in story.team.sprints[1].worked
    assert story.team.sprints[1].debt == line
    assert f"Technical debt: {line}." in story.state.gates.open["sprint-1"].question
    assert f"Technical debt after sprint-1: {line}." in report(story.state, DEVELOPMENT)
