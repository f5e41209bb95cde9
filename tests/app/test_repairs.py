"""What can be wrong with the branch of a session that is not finished, and what puts it right."""

import pytest
from tests.app.conftest import Sessions

from iterdev.app.doctor import Finding, findings
from iterdev.core import ids


def branch_findings(sessions: Sessions, *, fix: bool = False) -> list[Finding]:
    return [found for found in findings(sessions.repo.path, fix=fix) if found.subject.startswith("branch of")]


@pytest.mark.parametrize("to", ["", "foreign"])
def test_a_branch_that_was_taken_away_from_what_has_landed_is_put_back(sessions: Sessions, to: str) -> None:
    session, git = sessions.start(), sessions.repo.git
    base, ref = git("rev-parse", "HEAD"), f"refs/heads/{ids.branch(sessions.repository.last_active())}"
    git("update-ref", ids.tip_ref(session), base)
    foreign = git("commit-tree", "-m", "foreign", "HEAD^{tree}")
    git("update-ref", ref, foreign) if to else git("update-ref", "-d", ref)

    (found,) = branch_findings(sessions)
    (fixed,) = branch_findings(sessions, fix=True)

    assert found.hint == f"iterdev resume {session}"
    assert fixed.fixed
    assert git("rev-parse", ref) == base
    assert branch_findings(sessions) == []


def test_a_branch_that_a_checkout_has_and_that_lacks_work_is_told_with_the_way_out(sessions: Sessions) -> None:
    session, git = sessions.start(), sessions.repo.git
    git("switch", "-q", ids.branch(session))
    git("update-ref", ids.tip_ref(session), git("commit-tree", "-p", "HEAD", "-m", "landed", "HEAD^{tree}"))

    (found,) = branch_findings(sessions, fix=True)

    assert f'is checked out in "{sessions.repo.path}"' in found.problem
    assert found.hint == f"git -C {sessions.repo.path} switch --detach"


def test_commits_of_the_user_on_top_of_what_has_landed_are_no_problem(sessions: Sessions) -> None:
    session, git = sessions.start(), sessions.repo.git
    base = git("rev-parse", "HEAD")
    git("update-ref", ids.tip_ref(session), base)
    git("update-ref", f"refs/heads/{ids.branch(session)}", git("commit-tree", "-p", base, "-m", "m", "HEAD^{tree}"))

    assert branch_findings(sessions) == []
