"""Questions in a terminal, as lines."""

from tests.core.conftest import Story

from iterdev.core.results import Usage
from iterdev.core.session import events
from iterdev.core.views.gates import GateView, gate_view
from iterdev.surfaces.cli.output.prompt import question_lines
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT


def question(story: Story) -> GateView:
    story.goes_on()
    (gate,) = story.state.gates.open.values()
    return gate_view(gate, DEVELOPMENT, story.state)


def test_the_plan_is_shown_with_titles_roles_agents_and_waves_and_what_it_may_cost() -> None:
    story = Story(pipeline=Pipeline.patch, requirement="Fix the greeting", auto=False, budget_usd=5.0)

    lines = question_lines(question(story))

    assert lines == [
        "Run these tasks?",
        "  wave  task        role       agent  mode      title",
        "  1     DEV-001     developer  mine   csv-wave  Fix the greeting",
        "  2     VERIFY-001  tester     mine   csv-wave  Verify the fix",
        f"  Table: {story.state.session.folder}/tasks.csv",
        "  Spent so far: nothing. Limits: budget usd 5.",
        "  1. approve (Recommended): Accept the plan and start",
        "  2. edit: Edit tasks.csv in your editor, then see the plan again",
        "  3. reject: Abort: nothing is run",
    ]


def test_the_pipelines_are_described() -> None:
    lines = question_lines(question(Story(requirement="Fix a typo", auto=False)))

    assert "  1. approve (Recommended): Use the patch pipeline" in lines
    assert "  3. sprint: Standard: DESIGN -> DEV -> VERIFY + REVIEW (4 tasks)" in lines


def test_what_was_spent_before_is_part_of_the_question_about_the_plan() -> None:
    story = Story(pipeline=Pipeline.patch, auto=False)
    story.goes_on()
    story.happens(events.AttemptStarted("DEV-001", 1, "mine", "b"))
    outcome = events.Interrupted(usage=Usage(input_tokens=10, output_tokens=5, cost_usd=0.5))
    story.ends("DEV-001", outcome)

    lines = question_lines(question(story))

    assert "  Spent so far: $0.50, 15 tokens. No budget is set ([run] budget_usd in iterdev.toml)." in lines


def test_the_default_of_a_question_that_happens_without_a_user_is_no_recommendation() -> None:
    story = Story()
    gate = events.Gate(kind="wave", subject="1", question="Again?", choices=("abort", "retry"))

    lines = question_lines(gate_view(gate, DEVELOPMENT, story.state))

    assert lines[1] == "  1. abort: Continue without them; tasks that depend on them are skipped"
