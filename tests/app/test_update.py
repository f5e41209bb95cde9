"""`iterdev update`: the branch that a session came from is brought into the session, with real git."""

import pytest
from tests.app.conftest import Sessions, Team
from tests.conftest import Repo
from tests.session_files import left_behind, statuses

from iterdev.app import inspect
from iterdev.app.branches.update import request_update
from iterdev.app.completion import accept, archive
from iterdev.app.rollback import roll_back
from iterdev.core.errors import UserError
from iterdev.core.types import Ending
from iterdev.engine.loop import BeforeStarts

pytestmark = pytest.mark.elsewhere

UNITE = "sed -i '/^[<=>]\\{7\\}/d' README.md"
"""Keeps both sides of a conflict."""


def moved_main(repo: Repo, name: str = "users.txt", text: str = "the user's own\n") -> str:
    repo.write(name, text)
    return repo.commit("the user goes on")


def branch_of(team: Team) -> str:
    return f"iterdev/{team.session}"


@pytest.mark.parametrize("engine", ["wave", "beat"])
def test_a_clean_update_is_a_merge_commit_on_which_the_tests_are_run(repo: Repo, team: Team, engine: str) -> None:
    team.run(pipeline="patch", engine=engine)
    work, users = repo.git("rev-parse", branch_of(team)), moved_main(repo)

    asked = request_update(team.repository, team.session)
    run = team.resume()

    state = team.repository.state(team.session)
    assert (asked.branch, asked.commit, asked.is_new, asked.was_finished) == ("main", users, True, True)
    assert run.succeeded, run.lines
    assert repo.git("rev-list", "--parents", "-1", branch_of(team)).split()[1:] == [work, users]
    assert statuses(repo.folder(engine)) == dict.fromkeys(
        ["DEV-001", "VERIFY-001", "UPDATE-001", "VERIFY-002"], "completed"
    )
    assert state.tasks.progress["VERIFY-002"].base == state.branch.tip
    assert [call["task"] for call in repo.calls()] == ["DEV-001"]
    assert inspect.replay(team.repository, team.session).difference is None
    assert left_behind(repo) == []


@pytest.mark.hosts
def test_the_users_commits_are_not_part_of_the_sessions_change(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    users = moved_main(repo)

    request_update(team.repository, team.session)
    team.resume()

    branch = team.repository.state(team.session).branch
    assert branch.base == users
    assert repo.git("diff", "--name-only", branch.base, branch.tip) == "DEV-001.txt"


def test_after_an_update_accept_is_a_fast_forward(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    moved_main(repo)
    request_update(team.repository, team.session)
    team.resume()

    accepted = accept(team.repository, team.session)

    assert accepted.commit == repo.git("rev-parse", branch_of(team))


def test_what_git_cannot_merge_becomes_a_task_before_the_tests_are_run(repo: Repo, team: Team) -> None:
    repo.behave(
        **{
            "DEV-001": {"write": {"README.md": "# Theirs\n"}},
            "UPDATE-001-fix-conflict": {"write": {}, "run": UNITE},
        }
    )
    team.run(pipeline="patch")
    users = moved_main(repo, "README.md", "# Mine\n")

    request_update(team.repository, team.session)
    run = team.resume()

    state = team.repository.state(team.session)
    assert run.succeeded, run.lines
    assert repo.git("show", f"{branch_of(team)}:README.md").splitlines() == ["# Theirs", "# Mine"]
    assert (state.branch.base, repo.git("merge-base", users, branch_of(team))) == (users, users)
    assert state.tasks.plan["VERIFY-002"].deps == ("UPDATE-001-fix-conflict",)
    assert "in conflict with what landed before" in team.prompts("UPDATE-001-fix-conflict")[0]
    assert inspect.replay(team.repository, team.session).difference is None


def test_a_conflict_that_could_not_be_resolved_leaves_the_session_as_it_was_and_can_be_tried_again(
    repo: Repo, team: Team
) -> None:
    fix = "UPDATE-001-fix-conflict"
    repo.behave(**{"DEV-001": {"write": {"README.md": "# Theirs\n"}}, fix: {"exit": 1}})
    team.run(pipeline="patch")
    work, base = repo.git("rev-parse", branch_of(team)), repo.git("rev-parse", "main")
    users = moved_main(repo, "README.md", "# Mine\n")
    request_update(team.repository, team.session)

    failed = team.resume()
    branch = team.repository.state(team.session).branch
    repo.behave(**{fix: {"write": {}, "run": UNITE}})
    again = team.retry()

    assert not failed.succeeded
    assert (branch.tip, branch.base) == (work, base)
    assert again.succeeded, again.lines
    assert team.repository.state(team.session).branch.base == users


def test_a_paused_session_gets_the_update_at_once_and_its_agents_are_started_by_resume(repo: Repo, team: Team) -> None:
    team.step_only("Add a greeting", pipeline="sprint")
    users = moved_main(repo)
    asked = request_update(team.repository, team.session)

    landed = team.resume(scope=BeforeStarts())
    calls = len(repo.calls())
    rest = team.resume()

    assert not asked.was_finished
    assert landed.result.ending is Ending.stepped
    assert team.repository.state(team.session).branch.base == users
    assert calls == 1
    assert rest.succeeded, rest.lines
    assert "UPDATE-001" in team.repository.state(team.session).tasks.plan
    assert "VERIFY-002" not in team.repository.state(team.session).tasks.plan


def test_an_update_that_was_only_asked_for_is_made_by_whoever_resumes(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    users = moved_main(repo)

    request_update(team.repository, team.session)

    assert team.repository.unfinished() == [team.session]
    with pytest.raises(UserError, match="is not finished"):
        accept(team.repository, team.session)
    assert team.resume().succeeded
    assert team.repository.state(team.session).branch.base == users


def test_a_session_that_has_everything_is_left_alone(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    before = team.repository.state(team.session).seq

    asked = request_update(team.repository, team.session)

    assert not asked.is_new
    assert team.repository.state(team.session).seq == before


def test_a_second_update_brings_in_what_is_new_since_the_first(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    for name in ("one.txt", "two.txt"):
        users = moved_main(repo, name)
        request_update(team.repository, team.session)
        assert team.resume().succeeded

    state = team.repository.state(team.session)
    assert state.branch.base == users
    assert [task for task in state.tasks.plan if task.startswith("UPDATE")] == ["UPDATE-001", "UPDATE-002"]


def test_a_rollback_to_before_the_update_compares_with_the_old_base_again(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    before = team.repository.state(team.session).branch
    users = moved_main(repo)
    request_update(team.repository, team.session)
    team.resume()

    roll_back(team.repository, team.session, "UPDATE-001")
    rolled_back = team.repository.state(team.session).branch
    again = team.resume()

    assert (rolled_back.tip, rolled_back.base) == (before.tip, before.base)
    assert again.succeeded, again.lines
    assert team.repository.state(team.session).branch.base == users


def test_an_update_is_refused_while_an_engine_runs(sessions: Sessions) -> None:
    session = sessions.start()

    with sessions.repository.lease(sessions.log(session)), pytest.raises(UserError, match="is still running"):
        request_update(sessions.open(), session)


def test_an_archived_session_has_to_be_reopened_first(team: Team) -> None:
    team.run(pipeline="patch")
    archive(team.repository, team.session)

    with pytest.raises(UserError, match="is archived") as refused:
        request_update(team.repository, team.session)

    assert refused.value.hint == f"iterdev reopen {team.session}"


def test_tests_that_fail_on_the_users_new_commit_are_not_blamed_on_the_session(repo: Repo, team: Team) -> None:
    team.use_tests("test ! -e broken.txt")
    team.run(pipeline="patch")
    moved_main(repo, "broken.txt")

    request_update(team.repository, team.session)
    run = team.resume()

    assert statuses(repo.folder())["VERIFY-002"] == "completed", run.lines
