"""The loop of fix and review: what starts a round, what a round consists of, and how it ends when nothing helps."""

import json

import pytest
from tests.app.conftest import Run, Team
from tests.conftest import Repo
from tests.session_files import document, left_behind, messages, rows, statuses

from iterdev.app.inspect import replay

pytestmark = pytest.mark.elsewhere

CRITICAL = {
    "severity": "critical",
    "file": "login.py",
    "line": 3,
    "dimension": "security",
    "description": "the query is put together from input",
    "suggestion": "bind the parameters",
}
SPRINT = ["DESIGN-001", "DEV-001", "VERIFY-001", "REVIEW-001"]


def review(correctness: int, completeness: int, maintainability: int, security: int, *issues: object) -> object:
    scores = {
        "correctness": correctness,
        "completeness": completeness,
        "maintainability": maintainability,
        "security": security,
    }
    return {"result": {"scores": scores, "issues": list(issues)}}


@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_what_only_a_review_had_mended_is_tested_before_the_end(repo: Repo, team: Team, engine: str) -> None:
    """The fix of a finding breaks the tests: they are run again on it, and the next round mends them."""
    team.use_tests("test ! -e broken")
    repo.behave(
        **{
            "REVIEW-001": review(7, 7, 7, 6),
            "DEV-fix-1": {"write": {"broken": ""}},
            "DEV-fix-2": {"run": "rm broken"},
        }
    )

    run = team.run(pipeline="sprint", engine=engine)

    folder = repo.folder(engine)
    assert run.succeeded, run.lines
    assert list(rows(folder)) == [*SPRINT, "DEV-fix-1", "REVIEW-002", "DEV-fix-2", "REVIEW-003", "VERIFY-002"]
    assert document(folder / "verify" / "verify-002.json")["pass_rate"] == 100
    assert repo.git("ls-tree", "--name-only", f"iterdev/{folder.name}", "broken") == ""
    assert replay(team.repository, team.session).difference is None


@pytest.mark.requirement("R63", "R68", "R70", "R71", "R76", "R163")
def test_a_score_of_6_8_starts_one_round_of_fix_and_review(repo: Repo, team: Team) -> None:
    repo.behave(**{"REVIEW-001": review(7, 7, 7, 6)})

    run = team.run(pipeline="sprint")

    folder = repo.folder()
    table = rows(folder)
    assert run.succeeded, run.lines
    assert list(table) == [*SPRINT, "DEV-fix-1", "REVIEW-002"]
    assert table["REVIEW-001"]["review_score"] == "6.8"
    assert table["REVIEW-001"]["gc_signal"] == "REVISION_NEEDED"
    assert {name: (table[name]["wave"], table[name]["deps"], table[name]["gc_round"]) for name in [*table][4:]} == {
        "DEV-fix-1": ("4", "REVIEW-001", "1"),
        "REVIEW-002": ("5", "DEV-fix-1", "1"),
    }
    assert messages(folder, "gc_loop_trigger") == [
        "[coordinator] fix round 1: REVIEW-001 scored 6.8 with 0 critical findings"
    ]
    assert len(messages(folder, "review_revision")) == 1
    assert len(messages(folder, "task_unblocked")) == 1


@pytest.mark.requirement("R68", "R78")
@pytest.mark.parametrize(
    "issues",
    [[], [CRITICAL | {"severity": "medium"}], [CRITICAL | {"severity": "high"}], [CRITICAL | {"severity": "low"}]],
    ids=["none", "medium", "high", "low"],
)
def test_a_score_of_exactly_7_without_critical_findings_passes(repo: Repo, team: Team, issues: list[object]) -> None:
    repo.behave(**{"REVIEW-001": review(7, 7, 7, 7, *issues)})

    run = team.run(pipeline="sprint")

    folder = repo.folder()
    assert run.succeeded, run.lines
    assert list(rows(folder)) == SPRINT
    assert rows(folder)["REVIEW-001"]["gc_signal"] == "CONVERGED"
    assert messages(folder, "gc_loop_trigger") == []


@pytest.mark.requirement("R78")
def test_a_medium_finding_that_passes_leaves_a_warning(repo: Repo, team: Team) -> None:
    repo.behave(**{"REVIEW-001": review(9, 9, 9, 9, CRITICAL | {"severity": "medium"})})

    run = team.run(pipeline="sprint")

    folder = repo.folder()
    assert [text.startswith("REVIEW-001 passed") for text in run.view.warnings] == [True]
    assert len(document(folder / ".msg" / "meta.json")["warnings"]) == 1


@pytest.mark.requirement("R68", "R70", "R89", "R91")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_one_critical_finding_starts_a_round_however_high_the_score(repo: Repo, team: Team, engine: str) -> None:
    harmless = CRITICAL | {"severity": "low", "description": "a name could be shorter"}
    repo.behave(**{"REVIEW-001": review(9, 9, 9, 9, harmless, CRITICAL)})

    run = team.run(pipeline="sprint", engine=engine)

    folder = repo.folder(engine)
    (prompt,) = [str(call["prompt"]) for call in repo.calls() if call["task"] == "DEV-fix-1"]
    assert run.succeeded, run.lines
    assert list(rows(folder)) == [*SPRINT, "DEV-fix-1", "REVIEW-002"]
    assert "login.py:3" in prompt
    assert "the query is put together from input" in prompt
    assert "bind the parameters" in prompt
    assert "a name could be shorter" not in prompt.split("## Findings to fix")[1].split("\n## ")[0]
    assert "login.py:3" in (folder / "review" / "review-001.md").read_text(encoding="utf-8")
    assert len(messages(folder, "review_critical")) == 1


@pytest.mark.requirement("R44", "R72", "R73", "R74", "R75", "R76")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_reviews_that_never_pass_end_after_three_fixes_and_four_reviews(repo: Repo, team: Team, engine: str) -> None:
    repo.behave(reviewer=review(6, 6, 6, 6, CRITICAL))
    added = ["DEV-fix-1", "REVIEW-002", "DEV-fix-2", "REVIEW-003", "DEV-fix-3", "REVIEW-004"]

    run = team.run(pipeline="sprint", engine=engine)

    left = left_behind(repo)
    table = rows(repo.folder(engine))
    assert not run.succeeded
    assert run.view.outcome.reasons == ("convergence was forced in sprint-1",)
    assert list(table) == [*SPRINT, *added]
    assert {row["status"] for row in table.values()} == {"completed"}
    assert [table[name]["gc_round"] for name in added] == ["1", "1", "2", "2", "3", "3"]
    assert [table[name]["wave"] for name in added] == ["4", "5", "6", "7", "8", "9"]
    assert [table[name]["context_from"] for name in added[::2]] == ["REVIEW-001", "REVIEW-002", "REVIEW-003"]
    assert_forced_convergence_is_recorded(repo, run, engine)
    assert_every_round_is_on_the_bus(repo, engine)
    assert left == []


def assert_forced_convergence_is_recorded(repo: Repo, run: Run, engine: str) -> None:
    folder = repo.folder(engine)
    problem = "login.py:3 the query is put together from input"
    warning, *_ = document(folder / ".msg" / "meta.json")["warnings"]
    assert "forced after 3 fix rounds" in warning
    assert problem in warning
    assert problem in (folder / "wisdom" / "issues.md").read_text(encoding="utf-8")
    assert warning in (folder / "context.md").read_text(encoding="utf-8")
    assert warning in run.view.warnings
    review = f"{folder.relative_to(repo.path)}/review/review-004.md"
    assert any("the latest review is REVIEW-004: score " in line and line.endswith(review) for line in run.lines)
    assert "### The latest review, REVIEW-004\n" in (folder / "context.md").read_text(encoding="utf-8")


def assert_every_round_is_on_the_bus(repo: Repo, engine: str) -> None:
    rounds = messages(repo.folder(engine), "gc_loop_trigger")
    assert [text.split(":")[0] for text in rounds] == [f"[coordinator] fix round {number}" for number in (1, 2, 3)]
    assert document(repo.folder(engine) / "session.json")["gc_round"] == 3


@pytest.mark.requirement("R90", "R63")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_failing_measured_tests_raise_a_round_and_are_measured_again(repo: Repo, team: Team, engine: str) -> None:
    team.use_tests("test ! -e DEV-001.txt || test -e DEV-fix-1.txt || { echo greeting missing; exit 1; }")
    repo.behave(tester={"result": {"status": "failed", "error": "beyond me"}})

    run = team.run(pipeline="sprint", engine=engine)

    folder = repo.folder(engine)
    table = rows(folder)
    (prompt,) = [str(call["prompt"]) for call in repo.calls() if call["task"] == "DEV-fix-1"]
    assert run.succeeded, run.lines
    assert list(table) == [*SPRINT, "DEV-fix-1", "REVIEW-002", "VERIFY-002"]
    assert "VERIFY-001" in table["DEV-fix-1"]["deps"]
    assert table["VERIFY-002"]["deps"] == "DEV-fix-1"
    assert "greeting missing" in prompt
    assert document(folder / "verify" / "verify-001.json")["passed"] is False
    assert document(folder / "verify" / "verify-002.json")["passed"] is True
    # The tester gave up at once; a fix would be required after all of its tries.
    assert (len(messages(folder, "verify_failed")), messages(folder, "fix_required")) == (1, [])
    assert len(messages(folder, "gc_loop_trigger")) == 1


@pytest.mark.requirement("R32", "R33", "R34", "R35", "R59", "R62", "R63", "R77")
def test_a_multi_sprint_has_a_controller_that_records_its_decisions(repo: Repo, team: Team) -> None:
    repo.behave(**{"REVIEW-001": review(9, 9, 9, 9, CRITICAL)})

    run = team.run("Refactor payment module to support multiple gateways")

    folder = repo.folder()
    table = rows(folder)
    assert run.succeeded, run.lines
    assert {name: (row["wave"], row["deps"]) for name, row in table.items()} == {
        "DESIGN-001": ("1", ""),
        "DEV-001": ("2", "DESIGN-001"),
        "DEV-002": ("3", "DEV-001"),
        "VERIFY-001": ("4", "DEV-002"),
        "REVIEW-001": ("4", "DEV-002"),
        "GC-CHECK-001": ("5", "REVIEW-001"),
        "DEV-fix-1": ("6", "GC-CHECK-001"),
        "REVIEW-002": ("7", "DEV-fix-1"),
        "GC-CHECK-002": ("8", "REVIEW-002"),
    }
    assert [name for name, row in table.items() if row["exec_mode"] == "interactive"] == [
        "GC-CHECK-001",
        "GC-CHECK-002",
    ]
    first = document(folder / "interactive" / "GC-CHECK-001-result.json")
    second = document(folder / "interactive" / "GC-CHECK-002-result.json")
    assert (first["gc_decision"], first["status"], first["task_id"]) == ("REVISION", "completed", "GC-CHECK-001")
    assert (second["gc_decision"], second["gc_round"]) == ("CONVERGE", 1)
    assert first["timestamp"]
    assert "REVISION" in table["GC-CHECK-001"]["findings"]
    assert "CONVERGE" in table["GC-CHECK-002"]["findings"]


def decisions(repo: Repo) -> list[dict[str, object]]:
    lines = (repo.folder() / "discoveries.ndjson").read_text(encoding="utf-8").splitlines()
    return [line["data"] for line in map(json.loads, lines) if line["type"] == "gc_decision"]


@pytest.mark.requirement("R77", "R113")
def test_every_decision_is_on_the_board_with_its_numbers(repo: Repo, team: Team) -> None:
    repo.behave(**{"REVIEW-001": review(9, 9, 9, 9, CRITICAL)})

    team.run("Add a greeting", pipeline="multi-sprint")

    decided = decisions(repo)
    assert [decision["signal"] for decision in decided] == ["REVISION", "CONVERGE"]
    assert [decision["critical_count"] for decision in decided] == [1, 0]
    assert [decision["score"] for decision in decided] == [9, 9]


@pytest.mark.requirement("R77")
def test_the_decisions_of_later_sprints_are_on_the_board_too(repo: Repo, team: Team) -> None:
    milestones = {"result": {"milestones": [{"title": "Store them"}, {"title": "Serve them"}]}}
    repo.behave(architect=milestones, reviewer=review(8, 8, 8, 7), **{"REVIEW-002": review(6, 6, 6, 6)})

    team.run("Keep greetings", pipeline="multi-sprint")

    decided = [(decision["sprint"], decision["round"], decision["signal"]) for decision in decisions(repo)]
    assert decided == [(1, 0, "CONVERGE"), (2, 0, "REVISION"), (2, 1, "CONVERGE")]


@pytest.mark.requirement("R77")
def test_a_review_that_passes_beside_failing_tests_has_not_converged(repo: Repo, team: Team) -> None:
    team.use_tests("test ! -e DEV-001.txt || test -e DEV-fix-1.txt")

    team.run("Keep greetings", pipeline="multi-sprint")

    checked = document(repo.folder() / "interactive" / "GC-CHECK-001-result.json")
    assert [decision["signal"] for decision in decisions(repo)] == [checked["gc_decision"], "CONVERGE"]


@pytest.mark.requirement("R49", "R50", "R57")
def test_a_fix_that_fails_skips_its_review_and_is_told(repo: Repo, team: Team) -> None:
    repo.behave(**{"REVIEW-001": review(6, 6, 6, 6), "DEV-fix-1": {"exit": 3}})

    run = team.run(pipeline="sprint")

    folder = repo.folder()
    assert not run.succeeded
    assert statuses(folder)["DEV-fix-1"] == "failed"
    assert statuses(folder)["REVIEW-002"] == "skipped"
    assert "DEV-fix-1" in rows(folder)["REVIEW-002"]["error"]
    assert [run.view.counts[status] for status in ("completed", "failed", "skipped")] == [4, 1, 1]


VAGUE = {"severity": "high", "description": "nothing is tested"}


@pytest.mark.requirement("R91")
def test_a_finding_without_its_place_is_asked_for_again(repo: Repo, team: Team) -> None:
    repo.behave(**{"REVIEW-001#1": {"issues": [CRITICAL, VAGUE]}, "REVIEW-001": {"issues": []}})

    run = team.run(pipeline="sprint")

    again = team.prompts("REVIEW-001")[1:]
    assert run.succeeded, run.lines
    assert len(again) == 1
    assert '"issues[1]" does not name its file and line and dimension' in again[0]
    assert statuses(repo.folder()) == dict.fromkeys(SPRINT, "completed")


@pytest.mark.requirement("R91")
@pytest.mark.parametrize(
    "later", [{"issues": [VAGUE]}, {"exit": 3}, {"silent": True}, {"result": {"status": "failed"}}]
)
def test_a_review_whose_findings_never_get_a_place_is_kept_with_a_warning(
    repo: Repo, team: Team, later: dict[str, object]
) -> None:
    repo.behave(**{"REVIEW-001#1": {"issues": [VAGUE]}, "REVIEW-001": later})

    run = team.run(pipeline="sprint")

    report = (repo.folder() / "review" / "review-001.md").read_text(encoding="utf-8")
    assert rows(repo.folder())["REVIEW-001"]["status"] == "completed"
    assert "no file given (no dimension given): nothing is tested" in report
    assert any("although it was asked for" in warning for warning in run.view.warnings)
