"""The plan is edited before it is approved."""

import csv
import io
from collections.abc import Callable
from functools import partial

import anyio
import pytest
from tests.app.conftest import Team
from tests.conftest import Repo
from tests.session_files import statuses

from iterdev.app.answer import answer, plan_draft, take_over_plan
from iterdev.app.inspect import status
from iterdev.app.live.background import UnattendedQuestions
from iterdev.app.live.plan import WrongRow, read_plan, save_plan
from iterdev.app.resume import RunObserver, run_detached, run_session
from iterdev.core.errors import UserError
from iterdev.core.views.gates import EDIT, GateView
from iterdev.core.views.session import SessionView


def edited(text: str, *, without: str = "", mentions: bool = False, **titles: str) -> str:
    """The table with other titles, and without a row and, unless they are kept, every mention of it."""
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["id"] != without]
    for row in rows:
        row["title"] = titles.get(row["id"].replace("-", "_"), row["title"])
        for column in () if mentions else ("deps", "context_from"):
            row[column] = ";".join(name for name in row[column].split(";") if name != without)
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def waiting(team: Team, pipeline: str = "sprint") -> None:
    """A session that waits for the approval of its plan."""
    team.run(auto=False, pipeline=pipeline)


def test_an_edited_plan_is_shown_again_and_then_run(repo: Repo, team: Team) -> None:
    waiting(team)
    asked: list[GateView] = []

    async def ask(gate: GateView) -> str:
        asked.append(gate)
        if len(asked) > 1:
            return "approve"
        draft = plan_draft(team.repository, team.session)
        draft.write_text(edited(draft.read_text(), without="REVIEW-001", DEV_001="Greet the world"))
        take_over_plan(team.repository, team.session, draft)
        return EDIT

    result = anyio.run(run_session, team.repository, team.session, RunObserver(ask=ask))

    first, second = ("\n".join(gate.details) for gate in asked)
    assert "REVIEW-001" in first
    assert "REVIEW-001" not in second
    assert "Greet the world" in second
    assert list(statuses(repo.folder())) == ["DESIGN-001", "DEV-001", "VERIFY-001"]
    assert result.view.outcome.succeeded
    assert repo.git("log", "-1", "--format=%s", f"iterdev/{team.session}") == "DEV-001: Greet the world"
    assert not (repo.folder() / "tasks.edited.csv").exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("developer", "plumber"), "plumber"),
        (partial(edited, without="DESIGN-001", mentions=True), "not in the table"),
        (lambda _: "id,description\n", "no tasks"),
    ],
    ids=["unknown role", "dangling dependency", "no rows"],
)
def test_a_plan_that_is_not_valid_is_reported_and_kept(
    repo: Repo, team: Team, change: Callable[[str], str], message: str
) -> None:
    waiting(team)
    table = repo.folder() / "tasks.csv"
    before = table.read_text()
    draft = plan_draft(team.repository, team.session)
    draft.write_text(change(before))

    with pytest.raises(UserError, match=message):
        take_over_plan(team.repository, team.session, draft)

    assert table.read_text() == before
    assert plan_draft(team.repository, team.session).read_text() == draft.read_text() != before


def test_a_page_that_saves_a_plan_is_told_which_row_is_wrong(repo: Repo, team: Team) -> None:
    waiting(team)
    shown = read_plan(team.repository, team.session)
    rows = [dict(row.cells) for row in shown.rows]
    save = partial(save_plan, team.repository, team.session, digest=shown.digest)

    with pytest.raises(WrongRow, match="plumber") as wrong:
        save([*rows[:2], {**rows[2], "role": "plumber"}, *rows[3:]])
    with pytest.raises(WrongRow, match="no tasks") as empty:
        save([])

    assert (wrong.value.row, empty.value.row) == (2, None)
    assert read_plan(team.repository, team.session) == shown


def test_a_table_without_a_header_is_no_plan_that_a_page_can_save(repo: Repo, team: Team) -> None:
    waiting(team)
    (repo.folder() / "tasks.csv").write_text("")
    shown = read_plan(team.repository, team.session)

    with pytest.raises(WrongRow, match="line 1"):
        save_plan(team.repository, team.session, [{"id": "DEV-001"}], shown.digest)


def test_rows_that_are_deleted_after_the_approval_are_put_back(repo: Repo, team: Team) -> None:
    team.step_only("Add a greeting", pipeline="sprint")
    table = repo.folder() / "tasks.csv"
    table.write_text(edited(table.read_text(), without="REVIEW-001"))

    run = team.resume()

    assert "REVIEW-001" in statuses(repo.folder())
    assert any("were restored" in warning for warning in run.view.warnings)


def test_an_engine_in_the_background_takes_over_an_edit_while_it_waits(repo: Repo, team: Team) -> None:
    waiting(team, "patch")
    table = repo.folder() / "tasks.csv"
    happened = []

    def edit_and_then_answer(make: Callable[[int], SessionView]) -> None:
        view = make(10)
        if not happened and view.gates:
            happened.append("edited")
            table.write_text(edited(table.read_text(), without="VERIFY-001", DEV_001="Greet the world"))
        elif happened == ["edited"] and [task.title for task in view.tasks] == ["Greet the world"]:
            happened.append("answered")
            answer(team.repository, team.session, "plan", "approve")

    observer = RunObserver(show=edit_and_then_answer)
    anyio.run(run_detached, team.repository, team.session, observer)

    assert happened == ["edited", "answered"]
    assert statuses(repo.folder()) == {"DEV-001": "completed"}


def test_an_edit_that_is_not_valid_does_not_end_an_engine_that_waits(repo: Repo, team: Team) -> None:
    waiting(team, "patch")
    (repo.folder() / "tasks.csv").write_text("id,title\nDEV")
    repo.write("iterdev.toml", (repo.path / "iterdev.toml").read_text() + "\n[limits]\ngate = 0.05\n")
    questions = UnattendedQuestions(team.repository, team.session)
    gate = status(team.repository, team.session).gates[0]

    assert anyio.run(questions.ask, gate) is None
