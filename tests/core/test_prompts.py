"""The text that an agent gets."""

import json

import msgspec
import pytest
from tests.core.conftest import Story, a_design, done, measured, review, task

from iterdev.core import prompts
from iterdev.core.collaboration.checkpoints import CheckpointSaved
from iterdev.core.prompts import PromptContext
from iterdev.core.results import LearnedTexts
from iterdev.core.session import events
from iterdev.core.task_description import missing_sections
from iterdev.core.types import TaskId
from iterdev.teams.development.results import Finding
from iterdev.teams.development.roles import Pipeline, Role
from iterdev.teams.development.team import DEVELOPMENT

AROUND = PromptContext(board="discoveries.ndjson", changed=("app.py", "lib.py"))


def prompt(story: Story, name: str, around: PromptContext = AROUND) -> str:
    return story.prompt(name, around)


def part(text: str, title: str) -> str:
    """One part of a prompt, without its heading; empty if there is none."""
    return text.partition(f"\n## {title}\n")[2].partition("\n\n## ")[0].strip()


def in_sprint() -> Story:
    """A sprint in which the design is there and the work is done."""
    story = Story(pipeline=Pipeline.sprint)
    story.goes_on()
    story.does("DESIGN-001", done("one module", design=a_design(), wisdom=LearnedTexts(decisions=("no ORM",))))
    story.goes_on()
    story.does("DEV-001")
    return story


def after_review(*severities: str, score: float = 5, rate: float | None = 1.0) -> Story:
    """A sprint whose review or tests asked for a fix round."""
    story = in_sprint()
    story.goes_on()
    story.reviews("REVIEW-001", review(score, *severities))
    story.verifies("VERIFY-001", rate)
    story.goes_on()
    return story


@pytest.mark.requirement("R40")
def test_a_prompt_holds_the_whole_description_of_its_task() -> None:
    story = in_sprint()
    text = prompt(story, "DEV-001")

    assert story.row("DEV-001").description in text
    assert missing_sections(text) == ()


@pytest.mark.requirement("R40", "R41")
def test_a_description_that_a_person_wrote_is_put_into_the_form() -> None:
    text = prompt(Story(task("DEV-001")), "DEV-001")

    assert missing_sections(text) == ()
    assert "  - work of DEV-001" in text


@pytest.mark.requirement("R51", "R52")
def test_a_prompt_tells_what_came_before_or_that_there_is_nothing() -> None:
    story = in_sprint()

    assert part(prompt(story, "DESIGN-001"), "Previous context") == "No previous context available"
    assert part(prompt(story, "DEV-001"), "Previous context").startswith("[Task DESIGN-001: ")


def test_a_developer_gets_the_design_and_its_breakdown() -> None:
    text = prompt(in_sprint(), "DEV-001")

    assert "One module." in part(text, "Design")
    assert part(text, "Task breakdown").splitlines() == [
        "- task-1: Write it [export.py] it exports",
        "- task-2: Call it []",
    ]


@pytest.mark.requirement("R91")
def test_a_reviewer_is_bound_to_the_commit_under_review_and_its_files() -> None:
    story = in_sprint()

    under = part(prompt(story, "REVIEW-001"), "Under review")

    assert f"git diff base0000 {story.state.branch.tip}" in under
    assert under.splitlines()[1:] == ["- app.py", "- lib.py"]


@pytest.mark.requirement("R91")
def test_a_reviewer_is_asked_for_four_scores_and_for_places() -> None:
    text = prompt(in_sprint(), "REVIEW-001")

    for word in ("correctness", "completeness", "maintainability", "security", '"file"', '"line"'):
        assert word in part(text, "Result")


def test_a_tester_gets_the_changed_files() -> None:
    assert part(prompt(in_sprint(), "VERIFY-001"), "Changed files").splitlines() == ["- app.py", "- lib.py"]


@pytest.mark.requirement("R89")
def test_a_fix_gets_critical_findings_then_high_ones_and_no_others() -> None:
    story = after_review("low", "high", "medium", "critical")

    assert part(prompt(story, "DEV-fix-1"), "Findings to fix").splitlines() == [
        "- [critical] app.py:4 (no dimension given): critical problem",
        "- [high] app.py:2 (no dimension given): high problem",
    ]


def test_a_fix_gets_the_reviewer_s_suggestions() -> None:
    issue = Finding(
        severity="high", description="slow", file="a.py", line=3, dimension="correctness", suggestion="sort"
    )
    story = in_sprint()
    story.goes_on()
    story.reviews("REVIEW-001", msgspec.structs.replace(review(5), issues=(issue,)))
    story.verifies("VERIFY-001", 1.0)
    story.goes_on()

    assert part(prompt(story, "DEV-fix-1"), "Findings to fix").splitlines() == [
        "- [high] a.py:3 (correctness): slow",
        "  Suggestion: sort",
    ]


@pytest.mark.requirement("R89")
def test_a_fix_gets_the_failing_tests_and_what_they_said() -> None:
    found = part(prompt(after_review(score=9, rate=0.5), "DEV-fix-1"), "Findings to fix")

    assert "- failing test: test_a" in found
    assert "`pytest -q` said:\n```\nE assert 1 == 2\n```" in found


def test_a_fix_after_a_low_score_without_findings_is_told_so() -> None:
    found = part(prompt(after_review(score=6), "DEV-fix-1"), "Findings to fix")

    assert found == "- The score was too low; raise the quality of the changed code."


@pytest.mark.requirement("R89")
def test_a_later_fix_gets_the_findings_of_the_latest_review_only() -> None:
    story = after_review("critical")
    story.does("DEV-fix-1")
    story.goes_on()
    story.reviews("REVIEW-002", review(6, "high"))
    story.goes_on()

    assert part(prompt(story, "DEV-fix-2"), "Findings to fix") == "- [high] app.py:1 (no dimension given): high problem"


def test_what_the_team_learned_and_discovered_is_passed_on() -> None:
    around = PromptContext(board="discoveries.ndjson", discoveries=("- DEV-001 convention: tabs",))
    text = prompt(in_sprint(), "VERIFY-001", around)

    assert part(text, "What the team has learned") == "- decisions: no ORM"
    assert part(text, "Discoveries on the board") == "- DEV-001 convention: tabs"


def test_only_the_newest_notes_and_discoveries_are_passed_on() -> None:
    story = in_sprint()
    story.goes_on()
    story.does("VERIFY-001", done("", wisdom=LearnedTexts(learnings=tuple(f"n{number}" for number in range(99)))))
    around = PromptContext(board="discoveries.ndjson", discoveries=tuple(f"d{number}" for number in range(99)))

    text = prompt(story, "REVIEW-001", around)

    assert part(text, "What the team has learned").splitlines()[-1] == "- learnings: n98"
    assert len(part(text, "What the team has learned").splitlines()) == prompts.NOTES_SHOWN
    assert len(part(text, "Discoveries on the board").splitlines()) == prompts.DISCOVERIES_SHOWN


def test_the_commits_of_earlier_attempts_are_offered_to_the_next_one() -> None:
    story = Story(task("DEV-001"))
    story.does("DEV-001", events.Interrupted(commit="c0ffee"))

    assert "c0ffee" in part(prompt(story, "DEV-001"), "Earlier attempts")


@pytest.mark.requirement("R136")
def test_of_a_checkpoint_the_next_attempt_is_told_the_beginning_and_how_to_restore_it() -> None:
    story = Story(task("DEV-001"))
    story.happens(CheckpointSaved(task=TaskId("DEV-001"), pointer="checkpoints/DEV-001-1.json"))
    unreadable = prompt(story, "DEV-001")

    text = prompt(story, "DEV-001", msgspec.structs.replace(AROUND, checkpoint="x" * (prompts.CHECKPOINT_SHOWN + 9)))

    assert part(unreadable, "Earlier attempts") == ""
    assert f"{'x' * prompts.CHECKPOINT_SHOWN}…\n" in text
    assert f"`iterdev checkpoint restore --session-id {story.state.session.id} --task DEV-001`" in text


@pytest.mark.parametrize(
    ("name", "writes"), [("DEV-001", True), ("VERIFY-001", True), ("DESIGN-001", False), ("REVIEW-001", False)]
)
def test_who_may_change_files_is_told_so(name: str, writes: bool) -> None:  # noqa: FBT001
    rules = part(prompt(in_sprint(), name), "Rules")

    assert ("iterdev commits what you change" in rules) is writes
    assert ("Change no file" in rules) is not writes


@pytest.mark.parametrize(("name", "role"), [("DESIGN-001", Role.architect), ("REVIEW-001", Role.reviewer)])
def test_a_prompt_ends_with_the_schema_of_its_role(name: str, role: Role) -> None:
    body = part(prompt(in_sprint(), name), "Result")

    assert f'"id" is "{name}".' in body
    assert json.loads(body.partition("```json\n")[2].removesuffix("\n```")) == json.loads(
        json.dumps(DEVELOPMENT.result_schema(role))
    )


def test_a_correction_quotes_the_error_and_the_schema() -> None:
    text = prompts.correction('"id" is "X"', DEVELOPMENT.result_schema(Role.developer))

    assert 'Your result was not usable: "id" is "X"' in text
    assert '"$ref"' in text


def test_fixing_tests_is_confined_to_the_changed_files() -> None:
    schema = DEVELOPMENT.result_schema(Role.tester)
    text = prompts.fix_tests(TaskId("VERIFY-001"), measured(0.5), ["app.py"], schema)

    assert "- test_a" in text
    assert part(text, "You may change only these files").startswith("- app.py")


def test_problems_of_a_change_are_sent_back_to_its_developer() -> None:
    text = prompts.repair(["app.py does not parse"], ["lib.py is missing"], DEVELOPMENT.result_schema(Role.developer))

    assert text.startswith("## Fix these problems of your change\n- app.py does not parse\n")
    assert part(text, prompts.DOUBTS).startswith("- lib.py is missing")


def test_the_same_state_always_gives_the_same_prompt() -> None:
    assert prompt(in_sprint(), "DEV-001") == prompt(in_sprint(), "DEV-001")


def test_every_task_of_a_session_has_a_prompt() -> None:
    story = after_review("critical", rate=0.2)

    for name in story.state.tasks.plan:
        assert prompt(story, name).startswith(f"# {TaskId(name)}: ")


def test_the_tools_are_named_once_in_the_rules() -> None:
    text = prompt(in_sprint(), "DEV-001")

    assert text.count("`report_result`") == 1
    assert part(text, "Rules").endswith("have it checked at once.")
