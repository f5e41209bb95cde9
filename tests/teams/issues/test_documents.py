"""What a session of the issue team leaves: reports, records, prompts, the final report; and how it is read back."""

import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from tests.teams.issues.sessions import Run, audit, facts, usual

from iterdev.core import ids
from iterdev.core.errors import UserError
from iterdev.core.prompts import PromptContext
from iterdev.core.request import Request
from iterdev.core.rules.replay_check import compare
from iterdev.core.session import fold
from iterdev.core.session.attempts import Success
from iterdev.core.session.events import EngineStarted, Failed, RowEdit, SessionStarted, TableEdited, TasksReplanned
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.settings import Settings
from iterdev.core.types import Engine, Status
from iterdev.core.views.report import report
from iterdev.store.session_folder import json_records, rebuild, tasks_csv
from iterdev.teams.issues import prompts
from iterdev.teams.issues.documents import documents
from iterdev.teams.issues.events import BuildsPlanned, BuildTested
from iterdev.teams.issues.pipelines import IssueRequest
from iterdev.teams.issues.roles import Role, fields
from iterdev.teams.issues.state import issue_part
from iterdev.teams.issues.team import ISSUES
from iterdev.teams.table import TEAMS

MARCH_8 = 1772928000.0
"""Noon of 8 March 2026 in UTC."""


@pytest.mark.requirement("R169")
def test_a_context_report_has_its_nine_fields_and_those_of_the_issue() -> None:
    run = Run(1, priority=4)

    found = json.loads(documents(run.state)["explorations/context-GH-1.json"])

    assert list(found) == [
        *("issue_id", "issue", "relevant_files", "dependencies", "impact_scope", "existing_patterns"),
        *("related_changes", "key_findings", "complexity_assessment"),
    ]
    assert {"id", "title", "priority", "status", "labels", "feedback"} <= set(found["issue"])
    assert (found["impact_scope"], found["complexity_assessment"]) == ("low", "Low")


@pytest.mark.requirement("R155")
def test_the_session_record_has_its_seven_fields() -> None:
    run = Run(3, lambda task, _: audit(task, dict.fromkeys(fields(task).issues, 10)) if "AUDIT" in task.id else None)

    record = json.loads(json_records.records(run.state, ISSUES)["session.json"])

    assert {name: record[name] for name in list(record) if name in ISSUES.records(run.state).session} == {
        "session_id": "issue-x-20260308",
        "pipeline_mode": "full",
        "issue_ids": ["GH-1", "GH-2", "GH-3"],
        "execution_method": "gemini",
        "fix_cycles": 2,
        "max_fix_cycles": 2,
        "created_at": record["created_at"],
    }


@pytest.mark.requirement("R156")
def test_the_report_marks_tasks_cuts_findings_and_lists_the_five_deliverables() -> None:
    def agents(task: Task, _: State) -> Success | Failed | None:
        if task.role == Role.implementer:
            return Failed(error="it broke")
        done = usual(task)
        return msgspec.structs.replace(done, result=msgspec.structs.replace(done.result, findings="x" * 300))

    run = Run(3, agents)
    skipped = Run(1, lambda task, _: Failed(error="lost") if task.role == Role.planner else None)

    text = report(run.state, ISSUES)
    details = text.partition("## Task Details\n\n")[2]
    assert text.startswith("# Issue Resolution Report\n\n**Session**: issue-x-20260308\n")
    assert "**Pipeline**: full\n**Issues**: GH-1, GH-2, GH-3\n**Fix Cycles**: 0/2\n" in text
    assert "| Completed | 4 |\n| Failed | 1 |\n| Skipped | 0 |\n" in text
    assert "[OK] **EXPLORE-001**: Context analysis (explorer)\n" in details
    assert "[FAIL] **BUILD-001**: Implementation (implementer)\n   Error: it broke\n" in details
    assert f"   Findings: {'x' * 199}…\n" in details
    assert "[SKIP] **MARSHAL-001**: Queue formation (integrator)\n" in report(skipped.state, ISSUES)
    assert [line.split(" | ")[0] for line in text.partition("## Deliverables")[2].splitlines()[4:]] == [
        *("| Context Reports", "| Solution Plans", "| Audit Report", "| Execution Queue", "| Build Results"),
    ]


@pytest.mark.requirement("R162")
def test_a_row_without_issues_is_refused_with_its_line() -> None:
    with pytest.raises(UserError, match='line 2: the issue_ids of "BUILD-001" are empty'):
        tasks_csv.parse("id,description\nBUILD-001,build it\n", ISSUES)


def edited(run: Run, task: str, old: str, new: str) -> None:
    """Goes on after a person has changed a cell of a task, and has it done again."""
    rows = tasks_csv.parse(tasks_csv.table(run.state, ISSUES).replace(old, new), ISSUES)
    (row,) = (replace(row, edit=replace(row.edit, status=Status.pending)) for row in rows if row.edit.task.id == task)
    run.go_on(TableEdited((row.edit,)), *ISSUES.table_edited(run.state, [row]), EngineStarted(2, run.state.branch.tip))


@pytest.mark.parametrize("task", ["EXPLORE-001", "SOLVE-001", "BUILD-001"])
def test_an_issue_that_the_session_is_not_about_is_warned_of_and_left_out(task: str) -> None:
    run = Run(2)

    edited(run, task, "GH-1;GH-2", "GH-1;../../GH-99")

    text = prompts.team_parts(run.state, run.state.tasks.plan[task], PromptContext(board="")).parts[0]
    assert ("GH-1" in text, "GH-99" in text) == (True, False)
    assert f'tasks.csv names "../../GH-99" in {task}, which the session is not about' in run.state.warnings
    assert run.state.tasks.status(task) is Status.completed
    assert not any("GH-99" in path for path in documents(run.state))
    assert compare(run.entries, ISSUES).difference is None


@pytest.mark.requirement("R157")
@pytest.mark.parametrize(
    ("engine", "name", "expected"),
    [
        (Engine.wave, "GH-42", "issue-gh-42-20260308"),
        (Engine.wave, "ISS-20260308-120000", "issue-iss-20260308-120000-20260308"),
        (Engine.wave, "ISSUE.with-a.very-long.name-of-40-letters", "issue-issue-with-a-very-long-name-of-20260308"),
        (Engine.beat, "GH-42", "TISL-gh-42-2026-03-08"),
    ],
)
def test_the_id_of_a_session_is_made_of_the_first_issue_and_the_date(engine: Engine, name: str, expected: str) -> None:
    issues = (msgspec.structs.replace(facts(1), id=name), facts(2))
    request = Request(requirement="Resolve", engine=engine, prepared=IssueRequest(issues=issues, method=""))

    words = ISSUES.session_slug(request)

    assert ids.session_id(ISSUES.session_prefix(engine), words, engine, MARCH_8, ()) == expected


@pytest.mark.requirement("R159")
def test_an_audit_gets_the_findings_and_the_artifact_of_what_came_before() -> None:
    run = Run(3)
    by_hand = Run(3, lambda task, _: Failed(error="lost") if task.role == Role.planner else None)
    solve, rest = by_hand.state.tasks.plan["SOLVE-001"], ("AUDIT-001", "MARSHAL-001", "BUILD-001")
    rows = [RowEdit(task=by_hand.state.tasks.plan[task], status=Status.pending) for task in rest]
    done = RowEdit(task=solve, status=Status.completed, findings="I planned it myself")

    # A person wrote the plan, and there is no file with it.
    by_hand.go_on(TableEdited((done, *rows)), EngineStarted(2, "b"))

    heading = "## [SOLVE-001] Solution design\n"
    assert prompts.previous_context(run.state, "AUDIT-001") == f"{heading}planned\nArtifact: solutions/"
    assert prompts.previous_context(by_hand.state, "AUDIT-001") == f"{heading}I planned it myself\nArtifact: N/A"


@pytest.mark.requirement("R159")
def test_an_audit_has_ten_minutes_and_two_more_to_finish() -> None:
    limits = Settings().time_limits(ISSUES.time_limits)

    assert (limits.interactive, limits.finish, limits.wave) == (600, 120, 1200)


def written(run: Run, folder: Path, until: type | None = None) -> Path:
    """The folder of a session, as it was before an event of a kind."""
    count = next((n for n, entry in enumerate(run.entries) if until and isinstance(entry.event, until)), None)
    state = fold.replay(run.entries[:count], ISSUES)
    session = folder / ids.folder(state.session.engine, state.session.id)
    texts = {**json_records.records(state, ISSUES), **documents(state), "tasks.csv": tasks_csv.table(state, ISSUES)}
    for name, text in texts.items():
        (session / name).parent.mkdir(parents=True, exist_ok=True)
        (session / name).write_text(text, encoding="utf-8")
    return session


def rebuilt(session: Path) -> Run:
    _, happened = rebuild.session_events(session, Engine.wave, TEAMS, base="b", branch="main")
    return Run.of(happened)


def test_a_session_whose_journal_was_lost_goes_on_with_what_its_folder_tells(tmp_path: Path) -> None:
    def agents(task: Task, _: State) -> Success | None:
        return audit(task, dict.fromkeys(fields(task).issues, 40)) if task.id == "AUDIT-001" else None

    run = Run(5, agents)

    again = rebuilt(written(run, tmp_path, until=BuildsPlanned))

    before, after = issue_part(run.state), issue_part(again.state)
    assert (after.pipeline, after.cycles, after.chosen) == (before.pipeline, before.cycles, before.chosen)
    assert set(after.contexts) == set(before.contexts)
    assert {name: one.description for name, one in after.issues.items()} == {
        name: one.description for name, one in before.issues.items()
    }
    assert before.queue
    assert after.queue
    assert after.queue.order == before.queue.order
    assert again.waves == run.waves
    assert {progress.status for _, progress in again.state.tasks.rows()} == {Status.completed}
    assert "EXPLORE-001" not in {task for running in again.starts for task in running}


def test_what_cannot_be_the_id_of_an_issue_is_not_taken_from_the_folder(tmp_path: Path) -> None:
    folder = written(Run(2), tmp_path, until=BuildTested)
    for name in ("tasks.csv", "session.json"):
        (folder / name).write_text((folder / name).read_text().replace("GH-2", "../../GH-2"))

    assert list(issue_part(rebuilt(folder).state).issues) == ["GH-1"]


def test_a_finished_session_that_is_rebuilt_stays_finished(tmp_path: Path) -> None:
    run = Run(5)

    again = rebuilt(written(run, tmp_path))

    assert (again.starts, again.waves) == ([], run.waves)


@pytest.mark.parametrize("method", ["auto", "gemini"])
@pytest.mark.parametrize(("old", "new", "agent"), [("Implementation", "Renamed", ""), ('"gemini"', '"qwen"', "qwen")])
def test_the_agent_that_builds_is_the_one_that_an_edited_table_names(
    method: str, old: str, new: str, agent: str
) -> None:
    run = Run(1, method=method)
    before = run.state.tasks.plan["BUILD-001"].agent

    edited(run, "BUILD-001", old, new)

    assert run.state.tasks.plan["BUILD-001"].agent == (agent or before)
    assert compare(run.entries, ISSUES).difference is None


def test_so_is_that_of_a_session_whose_journal_was_lost(tmp_path: Path) -> None:
    run = Run(1, method="auto")
    folder = written(run, tmp_path, until=TasksReplanned)
    table = folder / "tasks.csv"
    table.write_text(table.read_text().replace('"auto"', '"codex"'))

    assert rebuilt(folder).state.tasks.progress["BUILD-001"].agent == "codex"


@pytest.mark.requirement("R154")
@pytest.mark.parametrize("queue", ["", "{half", '{"queue": 1}', "[]"])
def test_in_a_batch_whose_queue_cannot_be_read_one_task_builds_everything(tmp_path: Path, queue: str) -> None:
    session = written(Run(5), tmp_path, until=BuildsPlanned)
    (session / "queue" / "execution-queue.json").write_text(queue)

    again = rebuilt(session)

    (build,) = again.state.tasks.of_role(Role.implementer)
    assert (build.id, fields(build).issues) == ("BUILD-001", ("GH-1", "GH-2", "GH-3", "GH-4", "GH-5"))
    assert again.state.tasks.status("BUILD-001") is Status.completed
    assert "the execution queue cannot be read; one task builds all issues" in again.state.warnings


def test_a_folder_of_claude_code_workflow_is_a_session_of_this_team(tmp_path: Path) -> None:
    session = written(Run(1), tmp_path)
    record = {"session_id": session.name, "pipeline_mode": "quick", "issue_ids": ["GH-1"], "fix_cycles": 0}
    (session / "session.json").write_text(json.dumps(record))

    _, happened = rebuild.session_events(session, Engine.wave, TEAMS, base="b", branch="main")

    assert isinstance(happened[0], SessionStarted)
    assert happened[0].session.team == "issue"


def test_a_request_without_issues_is_refused_in_a_sentence() -> None:
    with pytest.raises(UserError, match="The request names no issue"):
        ISSUES.started(Request(requirement="x"), Settings(), {})
