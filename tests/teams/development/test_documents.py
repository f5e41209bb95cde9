import json
import re

import pytest
from msgspec.structs import replace
from tests.store.conftest import COMMIT, CRITICAL, Story, design, review, task

from iterdev.core.types import TaskId
from iterdev.core.verification import Verification
from iterdev.teams.development.documents import breakdown, design_document, documents
from iterdev.teams.development.results import Design, Finding

DESIGN = TaskId("DESIGN-001")


def section(text: str, title: str) -> list[str]:
    """The lines under a heading of the second level."""
    _, _, rest = text.partition(f"\n## {title}\n")
    return [line for line in rest.partition("\n## ")[0].splitlines() if line]


@pytest.mark.requirement("R85")
def test_a_design_has_decision_components_tasks_integration_points_and_risks() -> None:
    text = design_document(DESIGN, design())

    assert "Tokens are checked in one place." in text
    assert section(text, "Decision")[:2] == ["- Approach: JWT", "- Rationale: no state on the host"]
    assert section(text, "Components")[:4] == [
        "### api",
        "- Responsibility: answers requests",
        "- Dependencies: auth",
        "- Files: api.py",
    ]
    assert "### task-1: Check tokens" in section(text, "Tasks")
    assert "- Acceptance criteria: an old token is refused; a new one is not" in section(text, "Tasks")
    assert section(text, "Integration points") == ["- api uses auth"]
    assert section(text, "Risks") != []


@pytest.mark.requirement("R85")
@pytest.mark.parametrize("title", ["Decision", "Integration points", "Risks"])
def test_what_the_architect_wrote_under_a_heading_is_not_repeated(title: str) -> None:
    written = replace(design(), design=f"# Login\n\n## {title}\n\nIn the architect's own words.\n")

    text = design_document(DESIGN, written)

    assert text.count(f"## {title}\n") == 1
    assert section(text, title) == ["In the architect's own words."]


@pytest.mark.requirement("R85")
def test_the_strategy_and_the_integration_points_of_the_architect_are_shown() -> None:
    chosen = replace(design(), strategy="components", integration_points=("api calls auth.check(token)",))

    text = design_document(DESIGN, chosen)

    assert "**Strategy**: components\n" in text
    assert section(text, "Integration points") == ["- api calls auth.check(token)"]


@pytest.mark.requirement("R85")
def test_the_breakdown_has_every_field_of_each_task_and_an_order_that_can_be_followed() -> None:
    document = json.loads(breakdown(DESIGN, design()))

    assert document["tasks"][1] == {
        "id": "task-1",
        "title": "Check tokens",
        "files": ["auth.py", "api.py"],
        "complexity": "low",
        "dependencies": [],
        "acceptance_criteria": ["an old token is refused", "a new one is not"],
    }
    assert document["execution_order"] == ["task-1", "task-2"]
    assert (document["design_id"], document["total_files"]) == ("DESIGN-001", 2)


@pytest.mark.requirement("R85")
@pytest.mark.parametrize(
    ("dependencies", "order"),
    [
        ({"a": ["b"], "b": ["c"], "c": []}, ["c", "b", "a"]),
        ({"a": ["elsewhere"], "b": []}, ["a", "b"]),
        ({"a": ["b"], "b": ["a"], "c": []}, ["c", "a", "b"]),
    ],
    ids=["chain", "unknown", "circle"],
)
def test_the_execution_order_puts_dependencies_first(dependencies: dict[str, list[str]], order: list[str]) -> None:
    item = design().tasks[0]
    items = tuple(replace(item, id=name, dependencies=tuple(deps)) for name, deps in dependencies.items())

    assert json.loads(breakdown(DESIGN, replace(design(), tasks=items)))["execution_order"] == order


def test_acceptance_criteria_may_be_one_sentence() -> None:
    item = replace(design().tasks[0], acceptance_criteria="it works")

    document: Design = replace(design(), tasks=(item,))

    assert json.loads(breakdown(DESIGN, document))["tasks"][0]["acceptance_criteria"] == ["it works"]


@pytest.mark.requirement("R85")
def test_each_design_has_a_file_of_its_number(story: Story) -> None:
    story.add(task("DESIGN-001"), task("DESIGN-002", sprint=2))
    story.complete("DESIGN-001", design=design())
    story.complete("DESIGN-002", design=design())

    assert {"design/design-001.md", "design/design-002.md", "design/task-breakdown.json"} <= documents(
        story.state
    ).keys()


@pytest.mark.requirement("R88")
def test_the_log_of_the_developers_has_an_entry_for_every_development_task(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-fix-1", "DEV-001", round=1))
    early = documents(story.state).get("code/dev-log.md")
    story.complete("DEV-001", commit=COMMIT, changed=("auth.py", "a b.py"), findings="tokens expire")
    story.complete("DEV-fix-1", changed=())

    log = documents(story.state)["code/dev-log.md"]

    assert early is None
    assert log.startswith("# Development log\n")
    assert section(log, "DEV-001") == [
        "- Changed files: 2",
        "  - auth.py",
        "  - a b.py",
        "- Syntax: clean",
        "- Fix: no",
        f"- Commit: {COMMIT}",
        "- tokens expire",
    ]
    assert section(log, "DEV-fix-1")[:3] == ["- Changed files: 0", "- Syntax: clean", "- Fix: yes"]


@pytest.mark.requirement("R91")
def test_a_review_names_dimensions_and_places(story: Story) -> None:
    story.add(task("DEV-001"), task("REVIEW-001", "DEV-001"))
    story.complete("DEV-001", commit=COMMIT, changed=("auth.py",))
    story.complete("REVIEW-001", review=review(6.5, CRITICAL))

    text = documents(story.state)["review/review-001.md"]

    assert "**Score**: 6.5\n**Signal**: REVISION_NEEDED\n" in text
    assert "**Files reviewed**: auth.py\n" in text
    assert [line.split(":")[0] for line in section(text, "Dimensions")] == [
        "- correctness",
        "- completeness",
        "- maintainability",
        "- security",
    ]
    (finding,) = section(text, "Findings")
    assert re.fullmatch(r"- F-\w{8} \[CRITICAL\] auth.py:7 \(security\): tokens never expire .*the date", finding)


@pytest.mark.requirement("R91")
@pytest.mark.parametrize(
    ("said", "shown"), [("It follows the design.\n", "It follows the design."), ("", "The reviewer did not say.")]
)
def test_a_review_has_a_part_on_design_alignment(story: Story, said: str, shown: str) -> None:
    story.add(task("REVIEW-001"))
    story.complete("REVIEW-001", review=replace(review(9), design_alignment=said))

    assert section(documents(story.state)["review/review-001.md"], "Design alignment") == [shown]


@pytest.mark.requirement("R91")
def test_a_review_does_not_name_files_that_were_changed_after_it(story: Story) -> None:
    story.add(task("DEV-001"), task("REVIEW-001", "DEV-001"), task("DEV-002", "REVIEW-001", sprint=2))
    story.complete("DEV-001", commit=COMMIT, changed=("auth.py",))
    story.complete("REVIEW-001", review=review(9))
    story.complete("DEV-002", commit=COMMIT, changed=("later.py",))

    assert "**Files reviewed**: auth.py\n" in documents(story.state)["review/review-001.md"]


@pytest.mark.requirement("R91")
def test_a_review_says_so_where_a_finding_has_no_place(story: Story) -> None:
    story.add(task("REVIEW-001"))
    story.complete("REVIEW-001", review=review(6.5, Finding(severity="high", description="nothing is tested")))

    (finding,) = section(documents(story.state)["review/review-001.md"], "Findings")

    assert finding.endswith("[HIGH] no file given (no dimension given): nothing is tested")


@pytest.mark.parametrize(
    ("measured", "rate", "passed"),
    [
        (Verification(command="pytest", pass_rate=0.975, total=40), 97.5, True),
        (Verification(command="pytest", pass_rate=0.99, total=100, failures=("t",), regressions=("t",)), 99.0, False),
        (Verification(command="pytest", pass_rate=0.99, total=100, missing=("t",)), 99.0, False),
        (Verification(note="no tests"), None, False),
    ],
)
def test_a_verification_says_what_was_measured(
    story: Story, measured: Verification, rate: float | None, passed: object
) -> None:
    story.add(task("VERIFY-001"))
    story.complete("VERIFY-001", verification=measured, iterations=2)

    document = json.loads(documents(story.state)["verify/verify-001.json"])

    assert (document["verify_id"], document["pass_rate"], document["passed"]) == ("verify-001", rate, passed)
    assert (document["iterations"], document["regression_passed"]) == (2, passed)
    assert (document["command"], document["note"]) == (measured.command, measured.note)


@pytest.mark.requirement("R29")
def test_the_result_of_the_analyzer_has_mode_capabilities_score_roles_status_and_time(story: Story) -> None:
    story.add_pipeline()

    result = json.loads(documents(story.state)["interactive/task-analyzer-result.json"])

    assert result["pipeline_mode"] == "sprint"
    assert result["capabilities"] == ["tester", "reviewer"]
    assert result["complexity_score"] == story.team.analysis.score == 5
    assert result["roles_needed"] == ["architect", "developer", "tester", "reviewer"]
    assert (result["status"], result["timestamp"]) == ("completed", "2026-02-25T14:13:20+08:00")


@pytest.mark.requirement("R62")
def test_only_interactive_tasks_that_are_over_have_a_result_of_their_own(story: Story) -> None:
    story.add(task("REVIEW-001"), task("GC-CHECK-001", "REVIEW-001"), task("GC-CHECK-002", "GC-CHECK-001"))
    story.complete("REVIEW-001")
    story.decide("GC-CHECK-001")

    names = {name for name in documents(story.state) if name.startswith("interactive/")}

    assert names == {"interactive/task-analyzer-result.json", "interactive/GC-CHECK-001-result.json"}
