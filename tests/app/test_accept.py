"""Accepting as one commit, with the user as author, and taking it back: what the journal and later commands know."""

import pytest
from tests.app.conftest import Team
from tests.app.test_clean import names, reasons, refs

from iterdev.app.branches.clean import clean
from iterdev.app.branches.update import request_update
from iterdev.app.completion import AcceptOptions, accept, archive, preview_accept, undo_accept
from iterdev.app.rollback import roll_back
from iterdev.core.errors import UserError
from iterdev.core.session.delivery import Accepted
from iterdev.core.types import AcceptStyle

SQUASH = AcceptOptions(style=AcceptStyle.squash)
MINE = AcceptOptions(own_author=True)


@pytest.fixture
def done(team: Team) -> Team:
    """A team whose session has landed one file."""
    team.run(pipeline="patch")
    return team


def test_squashed_work_has_what_was_asked_as_its_message(done: Team) -> None:
    before = done.repo.git("rev-parse", "main")
    requirement = done.repository.state(done.session).session.requirement

    accepted = accept(done.repository, done.session, options=SQUASH)

    state = done.repository.state(done.session)
    assert done.repo.git("log", "--format=%s|%an", f"{before}..main") == f"{requirement}|Tester"
    assert (
        state.delivery.accepted
        == accepted
        == Accepted(
            "main", done.repo.git("rev-parse", "main"), before=before, work=state.branch.tip, style=AcceptStyle.squash
        )
    )
    assert state.lifecycle.accepted == accepted.commit


@pytest.mark.parametrize("options", [AcceptOptions(), SQUASH, MINE], ids=["plain", "squash", "author"])
def test_accepting_again_records_nothing_more(done: Team, options: AcceptOptions) -> None:
    first = accept(done.repository, done.session, options=options)
    entries = len(done.repository.journal.read(done.session))

    again = accept(done.repository, done.session)

    assert again == first
    assert len(done.repository.journal.read(done.session)) == entries


@pytest.mark.parametrize("options", [SQUASH, MINE], ids=["squash", "author"])
def test_clean_removes_refs_whose_change_is_on_the_users_branch_in_other_commits(
    done: Team, options: AcceptOptions
) -> None:
    accepted = accept(done.repository, done.session, options=options)

    cleaned = clean(done.repository)

    assert f"refs/heads/iterdev/{done.session}" in names(cleaned)
    assert refs(done.repo) == []
    assert {item.why for item in cleaned.removed if item.kind == "ref"} == {
        f"its change is on main, accepted as {accepted.commit[:12]}"
    }


def test_clean_keeps_squashed_work_that_a_hook_changed(done: Team) -> None:
    hook = done.repo.path / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\necho other > DEV-001.txt; git add DEV-001.txt\n")
    hook.chmod(0o755)
    accept(done.repository, done.session, options=SQUASH)

    cleaned = clean(done.repository)

    assert names(cleaned) == []
    assert reasons(cleaned) == {"it has commits that are on none of your branches"}


@pytest.mark.parametrize("archived", [False, True])
def test_clean_keeps_squashed_work_that_was_taken_back(done: Team, *, archived: bool) -> None:
    accept(done.repository, done.session, options=SQUASH)
    undo_accept(done.repository, done.session)
    if archived:
        archive(done.repository, done.session)

    assert names(clean(done.repository)) == []


@pytest.mark.parametrize("options", [AcceptOptions(), SQUASH, MINE], ids=["plain", "squash", "author"])
def test_what_was_taken_back_can_be_accepted_again(done: Team, options: AcceptOptions) -> None:
    before = done.repo.git("rev-parse", "main")
    accept(done.repository, done.session, options=options)

    undone = undo_accept(done.repository, done.session)
    again = accept(done.repository, done.session, options=options)

    assert (undone.branch, undone.commit, again.before) == ("main", before, before)
    assert done.repository.state(done.session).lifecycle.accepted == again.commit


def test_what_was_not_accepted_cannot_be_taken_back(done: Team) -> None:
    with pytest.raises(UserError, match="is not accepted"):
        undo_accept(done.repository, done.session)


def test_a_rollback_after_a_squash_names_the_command_that_undoes_it(done: Team) -> None:
    accepted = accept(done.repository, done.session, options=SQUASH)
    before = accepted.before

    rolled = roll_back(done.repository, done.session, "DEV-001")
    done.repo.git(*rolled.undo.split()[1:])

    assert rolled.undo == f"git revert --no-edit {accepted.commit[:12]}"
    assert done.repo.git("diff", before, "main") == ""


def test_work_that_is_done_again_after_a_squash_is_squashed_again(done: Team) -> None:
    first = accept(done.repository, done.session, options=SQUASH)
    roll_back(done.repository, done.session, "DEV-001")
    done.repo.behave(developer={"write": {"DEV-001.txt": "another way\n"}})
    done.resume()

    with pytest.raises(UserError, match="as one commit") as refusal:
        accept(done.repository, done.session, options=AcceptOptions(style=AcceptStyle.merge))
    again = accept(done.repository, done.session)

    assert refusal.value.hint == f"iterdev accept {done.session} --squash"
    assert (again.style, again.before) == (AcceptStyle.squash, first.commit)
    assert done.repo.git("show", "main:DEV-001.txt") == "another way"


def test_after_an_update_git_itself_knows_what_the_branch_has(done: Team) -> None:
    accept(done.repository, done.session, options=SQUASH)
    done.repo.write("mine.txt", "mine\n")
    mine = done.repo.commit("mine")
    request_update(done.repository, done.session)
    done.resume()
    roll_back(done.repository, done.session, "VERIFY-002")
    done.resume()

    accepted = accept(done.repository, done.session)

    assert (accepted.style, accepted.before) == (AcceptStyle.fast_forward, mine)
    assert accepted.commit == done.repository.state(done.session).branch.tip


def test_the_preview_names_the_command_with_its_options(done: Team) -> None:
    seen = preview_accept(done.repository, done.session, AcceptOptions(style=AcceptStyle.merge, own_author=True))

    assert (seen.command, seen.fast_forward) == (f"iterdev accept {done.session} --no-ff --author me", False)
