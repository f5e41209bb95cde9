"""What accept, retry, rollback, archive, reopen and clean would do, without doing it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.app.conftest import DEV, Sessions, Team, failed, running_engine
from tests.e2e.conftest import every_file

from iterdev.app.branches.clean import clean, preview_clean
from iterdev.app.completion import accept, archive, preview_accept, preview_archive, preview_reopen
from iterdev.app.resume import preview_retry
from iterdev.app.rollback import preview_rollback
from iterdev.core.views.previews import Refusal


@contextmanager
def untouched(team: Team) -> Iterator[None]:
    """The checkout, all refs and the state of iterdev are the same before and after."""
    repo = team.repo

    def seen() -> tuple[str, dict[str, bytes]]:
        files = every_file(repo.path)
        return repo.git("for-each-ref"), {name: text for name, text in files.items() if "/objects/" not in name}

    team.repository.sessions()
    before = seen()
    yield
    assert seen() == before


@pytest.fixture
def done(team: Team) -> Team:
    """A team whose session has landed one file."""
    team.run(pipeline="patch")
    return team


def test_a_preview_of_accept_says_what_comes_and_how(done: Team) -> None:
    with untouched(done):
        seen = preview_accept(done.repository, done.session)

    assert (seen.into, seen.commits, seen.files, seen.fast_forward) == ("main", 1, ("DEV-001.txt",), True)
    assert (seen.refused, seen.command) == (None, f"iterdev accept {done.session}")
    assert seen.seq == done.repository.state(done.session).seq


def test_a_preview_of_accept_after_commits_of_the_user_is_a_merge(done: Team) -> None:
    done.repo.write("mine.txt", "mine\n")
    done.repo.commit("mine")

    with untouched(done):
        seen = preview_accept(done.repository, done.session)

    assert (seen.fast_forward, seen.refused) == (False, None)


def test_a_preview_of_accept_says_why_it_would_be_refused(done: Team) -> None:
    done.repo.write("README.md", "# Changed\n")
    dirty = preview_accept(done.repository, done.session).refused
    done.repo.git("checkout", "-q", "README.md")
    done.repo.write("DEV-001.txt", "not the team's\n")
    done.repo.commit("the same file")

    with untouched(done):
        conflict = preview_accept(done.repository, done.session).refused

    assert dirty
    assert 'uncommitted changes, such as "README.md"' in dirty.problem
    assert conflict
    assert "conflicts with" in conflict.problem
    assert conflict.hint == f"git merge iterdev/{done.session}"


def test_a_preview_of_a_rollback_says_what_is_done_again_and_where_the_branch_goes(done: Team) -> None:
    state = done.repository.state(done.session)
    with untouched(done):
        seen = preview_rollback(done.repository, done.session, "DEV-001")

    assert (seen.again, seen.removed) == (("DEV-001", "VERIFY-001"), ())
    assert (seen.tip, seen.to) == (state.branch.tip, state.branch.base)
    assert seen.command == f"iterdev rollback {done.session} DEV-001"


def test_a_preview_of_an_impossible_rollback_says_why(done: Team) -> None:
    seen = preview_rollback(done.repository, done.session, "DEV-009")

    assert seen.refused
    assert 'Cannot roll back to before "DEV-009"' in seen.refused.problem


def test_a_preview_of_a_retry_names_the_tasks(sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())

    seen = preview_retry(sessions.repository, session)

    assert (seen.again, seen.refused) == ((DEV, "VERIFY-001"), None)
    assert sessions.kinds(session)[-1] == "Finished"


def test_without_failures_there_is_nothing_to_retry(done: Team) -> None:
    with untouched(done):
        seen = preview_retry(done.repository, done.session)

    problem = f'No task of "{done.session}" failed or was skipped'
    assert seen.refused == Refusal(problem, f"iterdev status {done.session}")


def test_a_preview_of_the_archive_says_whether_work_is_not_accepted(done: Team) -> None:
    with untouched(done):
        seen = preview_archive(done.repository, done.session)

    assert (seen.unaccepted, seen.branch, seen.refused) == (True, f"iterdev/{done.session}", None)


def test_a_session_that_is_not_finished_cannot_be_archived_or_accepted(sessions: Sessions) -> None:
    session = sessions.start()

    seen = [preview(sessions.repository, session).refused for preview in (preview_archive, preview_accept)]

    assert seen == [Refusal(f'"{session}" is not finished', f"iterdev resume {session}")] * 2


def test_while_an_engine_runs_every_preview_says_so(sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())
    with running_engine(sessions, session):
        refused = (
            preview_retry(sessions.repository, session).refused,
            preview_rollback(sessions.repository, session, "DEV-001").refused,
            preview_archive(sessions.repository, session).refused,
            preview_accept(sessions.repository, session).refused,
        )

    assert all(one and "still running" in one.problem for one in refused)


def test_a_preview_of_a_reopening_says_if_there_is_nothing_to_reopen(done: Team) -> None:
    with untouched(done):
        refused = preview_reopen(done.repository, done.session).refused
    archive(done.repository, done.session)

    assert refused == Refusal(f'"{done.session}" is not archived', f"iterdev status {done.session}")
    assert preview_reopen(done.repository, done.session).refused is None


def test_a_preview_of_a_cleaning_names_what_goes_and_why_nothing_can(done: Team) -> None:
    with untouched(done):
        before = preview_clean(done.repository, done.session)
    accept(done.repository, done.session)
    with untouched(done):
        then = preview_clean(done.repository, done.session)
    clean(done.repository, done.session)
    after = preview_clean(done.repository, done.session)

    problem = f'Nothing of "{done.session}" can be removed: the session is neither archived nor accepted'
    assert before.refused == Refusal(problem, f"iterdev status {done.session}")
    assert f"refs/heads/iterdev/{done.session}" in [item.name for item in then.removed]
    assert (then.refused, then.kept) == (None, ())
    assert after.refused == Refusal(
        f'Nothing is left to remove of "{done.session}"', f"iterdev clean --undo {done.session}"
    )
