"""What agents hand in."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.conftest import Story, a_design, done, task

from iterdev.core.results import FINDINGS_LIMIT, Discovery, Misfit, Result, Usage, decode
from iterdev.core.session import events
from iterdev.core.types import Severity, Status, TaskId
from iterdev.store.journal import EventCodec
from iterdev.teams.development import results as team_results
from iterdev.teams.development.documents import documents
from iterdev.teams.development.results import Design, Development, Finding, Review
from iterdev.teams.development.roles import Role
from iterdev.teams.development.team import DEVELOPMENT

CODEC = EventCodec()
COMPONENT = {"name": "export", "dependencies": []}
ITEM = {"id": "task-1", "title": "Write it"}
SCORES = dict.fromkeys(("correctness", "completeness", "maintainability", "security"), 8)
EXTRA: dict[Role, dict[str, object]] = {
    Role.architect: {"design": "# Design", "components": [COMPONENT], "tasks": [ITEM]},
    Role.developer: {},
    Role.tester: {},
    Role.reviewer: {"scores": SCORES},
}


def handed_in(role: Role, **fields: object) -> Result:
    document = {"id": "T-1", "status": "completed", **EXTRA[role], **fields}
    return decode(json.dumps(document), kind=DEVELOPMENT.roles[role].result, task=TaskId("T-1"))


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        (Role.architect, Design),
        (Role.developer, Development),
        (Role.tester, team_results.Testing),
        (Role.reviewer, Review),
    ],
)
def test_each_role_hands_in_its_own_kind_of_result(role: Role, kind: type[Result]) -> None:
    assert type(handed_in(role)) is kind


@pytest.mark.requirement("R101")
@pytest.mark.parametrize(("length", "kept"), [(0, 0), (500, 500), (501, 500), (5000, 500)])
def test_findings_longer_than_500_characters_are_cut(length: int, kept: int) -> None:
    findings = handed_in(Role.developer, findings="é" * length).findings

    assert len(findings) == kept
    assert findings.endswith("…") is (length > FINDINGS_LIMIT)


@pytest.mark.requirement("R85")
def test_a_design_has_components_and_tasks_with_their_fields() -> None:
    item = {
        "id": "task-1",
        "title": "Write it",
        "files": ["export.py"],
        "complexity": "low",
        "dependencies": ["task-0"],
        "acceptance_criteria": ["it exports"],
    }

    design = handed_in(Role.architect, tasks=[item])

    assert isinstance(design, Design)
    (task,) = design.tasks
    assert (task.files, task.dependencies, task.acceptance_criteria) == (("export.py",), ("task-0",), ("it exports",))


@pytest.mark.requirement("R85")
def test_a_design_is_written_as_a_document_and_as_a_breakdown_with_an_order() -> None:
    story = Story(task("DESIGN-001"))
    story.does("DESIGN-001", done("", design=a_design()))

    files = documents(story.state)
    breakdown = json.loads(files["design/task-breakdown.json"])

    assert "One module." in files["design/design-001.md"]
    assert "### export" in files["design/design-001.md"]
    assert "### task-1: Write it" in files["design/design-001.md"]
    assert breakdown["execution_order"] == ["task-1", "task-2"]
    assert breakdown["tasks"][1] == {
        "id": "task-2",
        "title": "Call it",
        "files": [],
        "complexity": "",
        "dependencies": ["task-1"],
        "acceptance_criteria": [],
    }


@pytest.mark.requirement("R86")
@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        pytest.param({"components": []}, "components", id="no component"),
        pytest.param({"tasks": []}, "tasks", id="no task"),
        pytest.param({"components": [{"name": "export"}]}, "dependencies", id="a component without dependencies"),
        pytest.param({"components": None}, "components", id="null instead of components"),
        pytest.param({"design": None}, "design", id="no text"),
    ],
)
def test_an_incomplete_design_is_refused_and_the_message_says_where(fields: dict[str, object], complaint: str) -> None:
    with pytest.raises(Misfit, match=complaint):
        handed_in(Role.architect, **fields)


def test_an_optional_field_that_is_null_is_left_out() -> None:
    document = {"error": None, "findings": None, "discoveries": None, "usage": None, "external_dependencies": None}

    assert handed_in(Role.developer, **document) == handed_in(Role.developer)


@pytest.mark.requirement("R91", "R79")
@pytest.mark.parametrize(
    ("scores", "complaint"),
    [
        ({**SCORES, "security": 0}, "security"),
        ({**SCORES, "correctness": 10.5}, "correctness"),
        ({**SCORES, "completeness": "good"}, "completeness"),
        ({name: score for name, score in SCORES.items() if name != "maintainability"}, "maintainability"),
        (8, "scores"),
    ],
)
def test_a_review_must_score_all_four_dimensions_from_1_to_10(scores: object, complaint: str) -> None:
    with pytest.raises(Misfit, match=complaint):
        handed_in(Role.reviewer, scores=scores)


@pytest.mark.requirement("R91")
def test_a_finding_has_severity_place_dimension_and_suggestion() -> None:
    issue = {
        "severity": "HIGH",
        "file": "a.py",
        "line": 7,
        "dimension": "security",
        "description": "d",
        "suggestion": "s",
    }

    review = handed_in(Role.reviewer, issues=[issue])

    assert isinstance(review, Review)
    (found,) = review.issues
    assert (found.grade, found.place, found.dimension, found.suggestion) == (Severity.high, "a.py:7", "security", "s")


@pytest.mark.parametrize(
    ("file", "line", "place"),
    [("a.py", 7, "a.py:7"), ("a.py", "7-9", "a.py:7-9"), ("a.py", None, "a.py"), ("", "", "")],
)
def test_a_finding_without_a_line_is_placed_by_its_file(file: str, line: int | str | None, place: str) -> None:
    assert Finding(severity="low", description="d", file=file, line=line).place == place


@pytest.mark.requirement("R91")
def test_every_finding_is_asked_for_a_place_and_a_dimension_and_taken_without() -> None:
    asked = DEVELOPMENT.result_schema(Role.reviewer)["$defs"]["Finding"]
    review = handed_in(Role.reviewer, issues=[{"severity": "high", "description": "nothing is tested"}])

    assert {"file", "line", "dimension"} <= set(asked["required"])
    assert asked["properties"]["dimension"]["enum"] == list(SCORES)
    assert isinstance(review, Review)
    assert review.omissions == '"issues[0]" does not name its file and line and dimension'
    assert review.issues[0].reference == "no file given (no dimension given)"


def test_an_unknown_severity_is_refused_with_the_known_ones() -> None:
    with pytest.raises(Misfit, match='severity is "urgent", expected one of critical, high, medium, low'):
        handed_in(Role.reviewer, issues=[{"severity": "urgent", "description": "d"}])


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        pytest.param("", "empty", id="nothing"),
        pytest.param(" \n", "empty", id="blank"),
        pytest.param("done!", "malformed", id="prose"),
        pytest.param("[]", "Expected `object`", id="a list"),
        pytest.param('{"status": "completed"}', "id", id="no id"),
        pytest.param('{"id": "T-1"}', "status", id="no status"),
        pytest.param('{"id": "T-1", "status": "done"}', "status", id="unknown status"),
        pytest.param('{"id": "T-2", "status": "completed"}', '"id" is "T-2", expected "T-1"', id="another task"),
        pytest.param('{"id": "T-1", "status": "failed"}', '"error" does not say why', id="failed for no reason"),
        pytest.param('{"id": "T-1", "status": "completed", "usage": 3}', "usage", id="usage is a number"),
        pytest.param("[" * 100_000, "nested too deeply", id="nested without end"),
        pytest.param(
            '{"id": "T-1", "status": "completed", "error": "\\ud800"}', "truncated|surrogate", id="half a letter"
        ),
        pytest.param(b'{"id": "T-1", "status": "completed", "findings": "\xff"}', "utf-8", id="not UTF-8"),
        pytest.param('{"id": "T-1", "status": "completed", "usage": {"cost_usd": 1e999}}', "range", id="endless cost"),
    ],
)
def test_a_result_that_does_not_fit_is_refused_with_a_reason(body: str | bytes, complaint: str) -> None:
    with pytest.raises(Misfit, match=complaint):
        decode(body, kind=Development, task=TaskId("T-1"))


@pytest.mark.parametrize("role", EXTRA)
def test_an_agent_that_failed_owes_only_the_reason(role: Role) -> None:
    result = decode(
        '{"id": "T-1", "status": "failed", "error": "no luck"}', kind=DEVELOPMENT.roles[role].result, task=TaskId("T-1")
    )

    assert (result.status, result.error) == ("failed", "no luck")


def test_fields_that_nobody_knows_are_no_reason_to_refuse() -> None:
    assert handed_in(Role.developer, mood="good").status == "completed"


@pytest.mark.requirement("R85", "R91")
@pytest.mark.parametrize(
    ("role", "required"),
    [
        (Role.architect, {"id", "status", "design", "components", "tasks"}),
        (Role.developer, {"id", "status"}),
        (Role.tester, {"id", "status"}),
        (Role.reviewer, {"id", "status", "scores"}),
    ],
)
def test_the_schema_that_an_agent_reads_names_what_its_role_owes(role: Role, required: set[str]) -> None:
    document = DEVELOPMENT.result_schema(role)
    (name,) = (name for name in document["$defs"] if document["$ref"].endswith(f"/{name}"))

    assert set(document["$defs"][name]["required"]) == required


def test_usages_add_up() -> None:
    total = Usage(input_tokens=1, output_tokens=2, cost_usd=0.5) + Usage(input_tokens=10, cost_usd=0.25)

    assert total == Usage(input_tokens=11, output_tokens=2, cost_usd=0.75)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(), st.dictionaries(st.text(), JSON, max_size=3), st.integers(), st.floats(0, 1e6))
@settings(derandomize=True, deadline=None)
def test_whatever_an_agent_hands_in_survives_the_journal(
    findings: str, data: dict[str, object], tokens: int, cost: float
) -> None:
    result = handed_in(
        Role.developer,
        findings=findings,
        discoveries=[{"type": "convention", "data": data}],
        usage={"input_tokens": tokens, "cost_usd": cost},
    )
    outcome = events.Done(findings=result.findings, discoveries=result.discoveries, usage=result.usage)
    event = events.AttemptEnded(
        task=TaskId("T-1"), number=1, agent="mine", requests=1, outcome=outcome, status=Status.completed
    )

    assert CODEC.decode(CODEC.encode(event)) == event
    assert result.discoveries == (Discovery("convention", data),)


@pytest.mark.requirement("R91")
def test_a_dimension_that_is_none_of_the_four_counts_as_not_named() -> None:
    issue = {"severity": "low", "description": "slow", "file": "a.py", "line": 1}
    named, other = (
        handed_in(Role.reviewer, issues=[issue | {"dimension": word}]) for word in ("Correctness", "performance")
    )

    assert named.omissions == ""
    assert other.omissions == '"issues[0]" does not name its dimension'


@pytest.mark.parametrize(("levels", "fits"), [(60, True), (65, False), (400, False), (5_000, False)])
def test_a_result_may_be_nested_only_so_deeply(levels: int, *, fits: bool) -> None:
    # The result, its list, the discovery and its data are levels too.
    data = "[" * (levels - 4) + "]" * (levels - 4)
    body = f'{{"id": "T-1", "status": "completed", "discoveries": [{{"type": "x", "data": {{"deep": {data}}}}}]}}'

    if fits:
        decode(body, kind=Development, task=TaskId("T-1"))
    else:
        with pytest.raises(Misfit, match="nested too deeply"):
            decode(body, kind=Development, task=TaskId("T-1"))


def test_brackets_in_a_text_are_not_levels() -> None:
    assert handed_in(Role.developer, findings='[{"' * 100).findings == '[{"' * 100


def test_of_a_long_list_the_first_items_are_kept_and_the_findings_say_so() -> None:
    result = handed_in(
        Role.developer,
        findings="x" * 600,
        discoveries=[{"type": "convention", "data": {"name": str(number)}} for number in range(60_000)],
        tech_debt=[f"debt {number}" for number in range(60_000)],
        wisdom={"learnings": [f"lesson {number}" for number in range(60_000)]},
        changed_files=[f"{number}.py" for number in range(5_000)],
    )

    assert [one.data["name"] for one in result.discoveries] == [str(number) for number in range(200)]
    assert (len(result.tech_debt), len(result.wisdom.learnings)) == (200, 200)
    assert len(result.changed_files or ()) == 5_000
    assert len(result.findings) == FINDINGS_LIMIT
    assert result.findings.endswith(
        "… (only the first 200 of 60000 discoveries; the first 200 of 60000 tech_debt; "
        "the first 200 of 60000 learnings are kept)"
    )


def test_the_lists_of_items_are_bounded_too() -> None:
    tasks = [{**ITEM, "dependencies": [str(number) for number in range(2_000)]}]

    result = handed_in(Role.architect, tasks=tasks)

    assert isinstance(result, Design)
    assert len(result.tasks[0].dependencies) == 1_000


def test_a_list_at_its_limit_is_left_alone() -> None:
    result = handed_in(Role.developer, findings="did it", tech_debt=[f"debt {number}" for number in range(200)])

    assert (len(result.tech_debt), result.findings) == (200, "did it")


@pytest.mark.parametrize(
    ("said", "counted"),
    [
        ('{"cost_usd": -5, "input_tokens": -1}', Usage()),
        ('{"cost_usd": 1e308, "output_tokens": 9000000000000000000}', Usage(cost_usd=1e15, output_tokens=10**15)),
        ('{"cost_usd": -1e308, "input_tokens": 7}', Usage(input_tokens=7)),
    ],
)
def test_usage_is_never_negative_and_never_infinite(said: str, counted: Usage) -> None:
    result = decode(f'{{"id": "DEV-001", "status": "completed", "usage": {said}}}', kind=Result, task=TaskId("DEV-001"))

    assert result.usage == counted
    assert math.isfinite((result.usage + result.usage).cost_usd)
