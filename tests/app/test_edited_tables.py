"""Edits of tasks.csv between two runs: of a session that is over, and after the loss of the journal."""

import pytest
from tests.app.conftest import Team
from tests.conftest import Repo
from tests.session_files import rows, statuses

from iterdev.app import completion
from iterdev.app.resume import is_done, retry
from iterdev.app.sessions import to_continue, to_resume

pytestmark = pytest.mark.elsewhere

NEW_ROW = (
    '"DEV-002","More","and this too","developer","patch","1","0","DEV-001","","csv-wave","","pending","","","",""\n'
)


def worked(repo: Repo) -> list[object]:
    return [call["task"] for call in repo.calls()]


def lose_journal(repo: Repo) -> None:
    for file in (repo.path / ".workflow").glob("iterdev.db*"):
        file.unlink()


@pytest.mark.requirement("R67")
def test_a_row_of_a_finished_session_that_is_set_to_pending_is_run_again(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    table = repo.folder() / "tasks.csv"
    done = is_done(team.repository, team.session)
    table.write_text(table.read_text().replace('"completed"', '"pending"', 1))

    again = team.resume()

    assert done
    assert again.succeeded, again.lines
    assert worked(repo) == ["DEV-001", "DEV-001"]
    assert "  DEV-001 started (developer, mine, attempt 2)" in again.lines


@pytest.mark.requirement("R67")
@pytest.mark.parametrize("find", [to_continue, to_resume])
def test_a_row_added_to_a_finished_session_is_found_and_run(repo: Repo, team: Team, find: object) -> None:
    team.run(pipeline="patch")
    with (repo.folder() / "tasks.csv").open("a", encoding="utf-8") as file:
        file.write(NEW_ROW)

    assert callable(find)
    meant = find(team.repository)
    again = team.resume()

    assert meant == team.session
    assert again.succeeded, again.lines
    assert statuses(repo.folder()) == {"DEV-001": "completed", "VERIFY-001": "completed", "DEV-002": "completed"}


def test_the_table_of_an_archived_session_is_left_alone(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    completion.archive(team.repository, team.session)
    with (repo.folder() / "tasks.csv").open("a", encoding="utf-8") as file:
        file.write(NEW_ROW)

    team.resume()

    assert worked(repo) == ["DEV-001"]


@pytest.mark.requirement("R67")
@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_after_the_loss_of_the_journal_the_first_retry_runs_the_failed_task(
    repo: Repo, team: Team, engine: str
) -> None:
    repo.behave(developer={"result": {"status": "failed", "error": "no luck"}})
    team.run(pipeline="patch", engine=engine)
    lose_journal(repo)
    repo.behave()

    retry(team.repository, team.session)
    again = team.resume()

    assert again.succeeded, again.lines
    assert worked(repo)[-1] == "DEV-001"
    assert set(statuses(repo.folder(engine)).values()) == {"completed"}


@pytest.mark.requirement("R67")
def test_after_the_loss_of_the_journal_a_person_s_edit_still_counts(repo: Repo, team: Team) -> None:
    team.run(auto=False, pipeline="patch")
    lose_journal(repo)
    team.repository.sessions()
    table = repo.folder() / "tasks.csv"
    table.write_text(table.read_text().replace("PURPOSE: ", "PURPOSE: in verse; ", 1))

    team.resume(auto=True)

    assert "in verse" in rows(repo.folder())["DEV-001"]["description"]
    assert "in verse" in str(repo.calls()[0]["prompt"])


def test_a_session_whose_folder_came_from_elsewhere_is_not_warned_of_its_own_files(repo: Repo, team: Team) -> None:
    team.run(auto=False, pipeline="patch")
    lose_journal(repo)
    (repo.path / ".git" / "info" / "exclude").write_text("")

    done = team.resume(auto=True)

    assert done.succeeded, done.lines
    assert [text for text in done.view.warnings if ".workflow" in text or "checkout" in text] == []
    assert repo.git("status", "--porcelain") == ""
