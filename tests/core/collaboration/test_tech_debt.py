import pytest
from tests.core.conftest import Story, done, task

from iterdev.core.collaboration import tech_debt
from iterdev.core.collaboration.tech_debt import Debt, DebtCategory, DebtMoved, DebtStatus, Effort, Priority
from iterdev.core.policy import DebtRule, Policy
from iterdev.core.request import policy
from iterdev.core.results import TechDebt
from iterdev.core.settings import read
from iterdev.core.types import ConflictStrategy, Severity, TaskId
from iterdev.core.views.report import report
from iterdev.core.views.session import session_view
from iterdev.teams.development.team import DEVELOPMENT

DEV = TaskId("DEV-001")


def owes(story: Story, text: str, **fields: object) -> Debt:
    item = Debt(description=text, detection_date=story.now, **fields)
    story.happens(tech_debt.identified(story.state.debt, item))
    return story.state.debt[0]


def limits(document: dict[str, object]) -> Policy:
    """The policy of a configuration."""
    settings, team = read(document, DEVELOPMENT.workers, ()), DEVELOPMENT
    return policy(settings, team.workers, team.time_limits, auto=False, concurrency=1)


def moves(story: Story, item: Debt, status: DebtStatus, sprint: int = 1) -> None:
    story.happens(DebtMoved(debt_id=item.debt_id, status=status, sprint=sprint))


@pytest.mark.requirement("R140")
def test_debt_gets_an_id_from_its_date_and_the_defaults_of_its_fields() -> None:
    story = Story(task("DEV-001"))
    story.now = 1_772_000_000.123

    item = owes(story, "copied twice")

    assert item == Debt(
        debt_id="TD-mm1n1qpn",
        category=DebtCategory.code,
        source_task_id=None,
        description="copied twice",
        severity=Severity.medium,
        detection_date=1_772_000_000.123,
        owner=None,
        resolution_plan=None,
        estimated_effort=None,
        priority=Priority.medium,
        status=DebtStatus.open,
        related_files=(),
        sprint=1,
        resolved_in=None,
    )


@pytest.mark.requirement("R140")
def test_debt_is_told_to_everybody_with_its_category_and_its_first_50_characters() -> None:
    story = Story(task("DEV-001"))
    item = owes(story, "x" * 50 + "y", category=DebtCategory.test)

    message = story.state.messages.sent[-1]
    assert (message.type, message.sender, message.to) == ("tech_debt_identified", "coordinator", "all")
    assert message.summary.endswith("test - " + "x" * 50)
    assert message.data["ref"] == item.debt_id


def test_debt_has_no_limit_and_the_newest_is_first() -> None:
    story = Story(task("DEV-001"))
    for number in range(120):
        owes(story, f"number {number}")

    assert [item.description for item in story.state.debt] == [f"number {number}" for number in range(119, -1, -1)]
    assert len({item.debt_id for item in story.state.debt}) == 120


@pytest.mark.requirement("R140")
def test_debt_that_an_agent_reports_is_taken_up_when_its_attempt_is_done() -> None:
    story = Story(task("DEV-001", sprint=2))
    found = TechDebt(
        description="copied twice",
        category="Design",
        severity="HIGH",
        estimated_effort="small",
        priority="high",
        owner="architect",
        resolution_plan="merge them",
        related_files=("a.py",),
    )

    story.does("DEV-001", done("", tech_debt=("no tests for it", found)))

    second, first = story.state.debt
    assert (first.description, first.category, first.severity) == ("no tests for it", "code", "medium")
    assert (first.source_task_id, second.source_task_id) == (DEV, DEV)
    assert (second.category, second.severity, second.priority) == ("design", "high", "high")
    assert (second.estimated_effort, second.owner) == (Effort.small, "architect")
    assert (second.resolution_plan, second.related_files, second.sprint) == ("merge them", ("a.py",), 2)
    assert first.debt_id != second.debt_id
    assert [message.type for message in story.state.messages.sent].count("tech_debt_identified") == 2


def test_words_that_nobody_knows_count_as_nothing_said_and_empty_debt_is_none() -> None:
    story = Story(task("DEV-001"))
    strange = TechDebt(description="x", category="attic", severity="ugly", estimated_effort="days", priority="now")

    story.does("DEV-001", done("", tech_debt=(strange, " ", TechDebt(description=""))))

    (item,) = story.state.debt
    assert (item.category, item.severity, item.priority) == ("code", "medium", "medium")
    assert item.estimated_effort is None


def test_debt_that_is_known_is_not_taken_up_again_unless_it_was_resolved() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("DEV-003"))
    for name in ("DEV-001", "DEV-002"):
        story.does(name, done("", tech_debt=("copied twice", "copied twice ")))
    once = len(story.state.debt)
    moves(story, story.state.debt[0], DebtStatus.resolved)

    story.does("DEV-003", done("", tech_debt=("copied twice",)))

    assert once == 1
    assert [item.status for item in story.state.debt] == ["open", "resolved"]


def test_debt_of_an_attempt_that_failed_is_not_taken_up() -> None:
    story = Story(task("DEV-001"))

    story.fails("DEV-001")

    assert story.state.debt == ()


@pytest.mark.requirement("R141")
def test_the_report_has_total_four_severities_four_categories_open_items_and_items_in_progress() -> None:
    story = Story(task("DEV-001"))
    first = owes(story, "a", severity=Severity.critical, category=DebtCategory.test)
    second = owes(story, "b", severity=Severity.critical)
    owes(story, "c", category=DebtCategory.documentation)
    moves(story, first, DebtStatus.in_progress)
    moves(story, second, DebtStatus.deferred)

    made = tech_debt.report(story.state.debt)

    assert made.total == 3
    assert made.by_severity == {"critical": 2, "high": 0, "medium": 1, "low": 0}
    assert made.by_category == {"code": 1, "design": 0, "test": 1, "documentation": 1}
    assert [item.description for item in made.open_items] == ["c"]
    assert [item.description for item in made.in_progress_items] == ["a"]


@pytest.mark.requirement("R143")
def test_debt_is_ranked_by_severity_then_priority_then_age_and_only_while_it_is_unsettled() -> None:
    story = Story(task("DEV-001"))
    made = {}
    for text, severity, priority in (
        ("a", "low", "high"),
        ("b", "high", "low"),
        ("c", "high", "high"),
        ("d", "critical", "low"),
        ("e", "high", "high"),
        ("f", "critical", "high"),
    ):
        story.now += 1
        made[text] = owes(story, text, severity=Severity(severity), priority=Priority(priority))
    moves(story, made["f"], DebtStatus.resolved)
    moves(story, made["e"], DebtStatus.in_progress)

    assert [item.description for item in tech_debt.ranked(story.state.debt)] == ["d", "c", "e", "b", "a"]


@pytest.mark.requirement("R143")
def test_what_was_resolved_in_a_sprint_is_known_for_its_history() -> None:
    story = Story(task("DEV-001"))
    first, second = owes(story, "a"), owes(story, "b")
    moves(story, first, DebtStatus.resolved, sprint=2)
    moves(story, second, DebtStatus.resolved, sprint=2)
    moves(story, second, DebtStatus.open, sprint=3)

    assert [item.description for item in tech_debt.resolved_in(story.state.debt, 2)] == ["a"]
    assert story.state.debt[1].status == "resolved"


@pytest.mark.requirement("R143")
def test_debt_that_a_developer_paid_back_is_resolved_when_its_work_has_landed() -> None:
    story = Story(task("DEV-001", sprint=2))
    first, second = owes(story, "a"), owes(story, "b")
    paid = done("", commit="c1", resolved_debt=(first.debt_id, "TD-of-nobody", first.debt_id))

    story.does("DEV-001", paid)
    before = tech_debt.by_id(story.state.debt, first.debt_id)
    story.goes_on()

    after = tech_debt.by_id(story.state.debt, first.debt_id)
    assert before == first
    assert after
    assert (after.status, after.resolved_in, after.resolved_by) == ("resolved", 2, DEV)
    assert tech_debt.by_id(story.state.debt, second.debt_id) == second
    assert [text for text in story.state.warnings if "TD-of-nobody" in text] == [
        'DEV-001 reports that it resolves the debt "TD-of-nobody", which does not exist'
    ]


@pytest.mark.requirement("R143")
def test_work_that_is_to_be_done_again_pays_nothing_back() -> None:
    story = Story(task("DEV-001"), conflicts=ConflictStrategy.abort)
    item = owes(story, "a")
    story.does("DEV-001", done("", commit="c1", changed=("a.py",), resolved_debt=(item.debt_id,)))

    story.is_refused(DEV, "a.py")
    story.goes_on()

    assert story.state.debt == (item,)


@pytest.mark.requirement("R143")
def test_debt_is_owed_again_when_the_work_that_paid_it_back_is_undone() -> None:
    story = Story(task("DEV-001"))
    item = owes(story, "a")
    story.does("DEV-001", done("", resolved_debt=(item.debt_id,)))
    paid = story.state.debt[0].status

    story.rolls_back("DEV-001")

    assert paid == "resolved"
    assert story.state.debt == (item,)


@pytest.mark.requirement("R143")
@pytest.mark.parametrize(
    ("capacity", "chosen"),
    [
        (0, []),
        (1, ["tiny"]),
        (2, ["unknown"]),
        (3, ["unknown", "tiny"]),
        (5, ["big", "tiny"]),
        (7, ["big", "unknown", "tiny"]),
    ],
)
def test_a_sprint_is_recommended_the_most_pressing_debt_that_fits_into_its_capacity(
    capacity: int, chosen: list[str]
) -> None:
    story = Story(task("DEV-001"))
    owes(story, "big", severity=Severity.critical, estimated_effort=Effort.large)
    owes(story, "unknown", severity=Severity.high)
    owes(story, "tiny", severity=Severity.low, estimated_effort=Effort.small)

    assert [item.description for item in tech_debt.recommended(story.state.debt, capacity)] == chosen


@pytest.mark.requirement("R141")
def test_the_report_fits_into_one_line() -> None:
    story = Story(task("DEV-001"))
    nothing = tech_debt.line(story.state.debt)
    owes(story, "a", severity=Severity.critical, category=DebtCategory.test)
    moves(story, owes(story, "b"), DebtStatus.in_progress)
    moves(story, owes(story, "c"), DebtStatus.resolved)

    assert nothing == ""
    assert tech_debt.line(story.state.debt) == "3 in all (1 critical, 2 medium; 2 code, 1 test), 1 open, 1 in progress"


@pytest.mark.parametrize(
    ("severity", "sprints", "overdue"),
    [("high", 0, ["old", "grave"]), ("high", 1, ["grave"]), ("critical", 0, ["grave"]), ("low", 5, [])],
)
def test_debt_is_overdue_when_it_is_grave_enough_and_older_than_so_many_sprints(
    severity: str, sprints: int, overdue: list[str]
) -> None:
    story = Story(task("DEV-001"))
    owes(story, "new", severity=Severity.critical, sprint=3)
    owes(story, "old", severity=Severity.high, sprint=2)
    owes(story, "grave", severity=Severity.critical, sprint=1)
    owes(story, "light", severity=Severity.medium, sprint=1)
    moves(story, owes(story, "paid", severity=Severity.critical, sprint=1), DebtStatus.resolved)

    found = tech_debt.overdue(story.state.debt, DebtRule(severity=Severity(severity), sprints=sprints), sprint=3)

    assert sorted(item.description for item in found) == sorted(overdue)


def test_without_a_rule_no_debt_is_overdue_and_the_configuration_has_none_by_default() -> None:
    story = Story(task("DEV-001"))
    owes(story, "a", severity=Severity.critical)

    rule = limits({"debt": {"severity": "high", "sprints": 3}}).debt

    assert tech_debt.overdue(story.state.debt, None, sprint=9) == ()
    assert limits({}).debt is None
    assert rule == DebtRule(severity=Severity.high, sprints=3)


def test_open_debt_is_counted_in_the_picture_and_listed_in_the_report() -> None:
    story = Story(task("DEV-001"))
    without = session_view(story.state, DEVELOPMENT).debt
    first = owes(story, "a\nb", severity=Severity.high)
    owes(story, "c")
    moves(story, owes(story, "d"), DebtStatus.resolved)

    assert without == ""
    assert session_view(story.state, DEVELOPMENT).debt == "2 open (1 high, 1 medium)"
    assert f"- {first.debt_id} (high): a b\n" in report(story.state, DEVELOPMENT)
