"""`iterdev clean`: what is proved to be somewhere else goes, everything else stays, and refs can be restored."""

import os
import re
from pathlib import Path

import pytest
from tests.app.conftest import Team
from tests.conftest import Repo

from iterdev.app.branches.clean import Cleaning, clean, undo
from iterdev.app.branches.update import request_update
from iterdev.app.completion import accept, archive
from iterdev.core.errors import UserError
from iterdev.host import clock, paths
from iterdev.host.environments.cache import Cache, Made
from iterdev.host.git import session_refs


def refs(repo: Repo, *spaces: str) -> list[str]:
    return repo.git("for-each-ref", "--format=%(refname)", *(spaces or session_refs.SPACES)).splitlines()


def names(found: Cleaning, kind: str = "ref") -> list[str]:
    return [item.name for item in found.removed if item.kind == kind]


def reasons(found: Cleaning) -> set[str]:
    return {item.why for item in found.kept}


def test_the_refs_of_an_accepted_session_go_and_its_folder_and_journal_stay(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    accept(team.repository, team.session)
    before = refs(repo)

    done = clean(team.repository)

    assert sorted(names(done)) == sorted(before)
    assert f"refs/heads/iterdev/{team.session}" in before
    assert refs(repo) == []
    assert repo.folder().is_dir()
    assert team.repository.state(team.session).lifecycle.accepted


def test_a_dry_run_lists_the_same_and_changes_nothing(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    accept(team.repository, team.session)
    before = refs(repo)

    planned = clean(team.repository, dry_run=True)

    assert refs(repo) == before
    assert planned == clean(team.repository)


def test_an_undo_restores_every_ref_as_it_was(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    accept(team.repository, team.session)
    before = repo.git("for-each-ref")
    clean(team.repository)

    restored = undo(team.repository)

    assert repo.git("for-each-ref") == before
    assert f"refs/heads/iterdev/{team.session}" in restored.refs
    with pytest.raises(UserError, match="Nothing was removed"):
        undo(team.repository)


@pytest.mark.requirement("R180")
def test_deleting_one_session_leaves_everything_of_the_others_alone(repo: Repo, team: Team) -> None:
    team.run("Add a greeting", pipeline="patch")
    first = team.session
    accept(team.repository, first)
    team.run("Add a farewell", pipeline="patch")
    other = team.session
    archive(team.repository, other)
    pools = {name: paths.workspaces_of(team.repository.top) / name / "1" / "tree" for name in (first, other)}
    stray = paths.temps() / "0123456789ab"
    for folder in (*pools.values(), stray):
        folder.mkdir(parents=True)
    before = refs(repo)

    done = clean(team.repository, first)

    assert sorted(names(done)) == sorted(name for name in before if first in name)
    assert refs(repo) == [name for name in before if other in name]
    assert (pools[first].exists(), pools[other].exists(), stray.exists()) == (False, True, True)
    assert sorted(names(clean(team.repository, dry_run=True))) == sorted(refs(repo))
    assert team.repository.folder(team.repository.state(first)).is_dir()


def test_an_undo_of_one_session_restores_its_refs_alone(repo: Repo, team: Team) -> None:
    team.run("Add a greeting", pipeline="patch")
    accept(team.repository, team.session)
    before = repo.git("for-each-ref", *session_refs.SPACES)
    repo.git("update-ref", f"{session_refs.TRASH}/{int(clock.now())}/heads/iterdev/ids-other", "HEAD")
    clean(team.repository, team.session)

    undo(team.repository, team.session)

    assert repo.git("for-each-ref", *session_refs.SPACES) == before
    with pytest.raises(UserError, match=f'Nothing of "{team.session}" was removed'):
        undo(team.repository, team.session)


def test_an_undo_leaves_a_name_alone_that_is_taken_again(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    accept(team.repository, team.session)
    clean(team.repository)
    repo.write("more.txt", "more\n")
    other = repo.commit()
    branch = f"refs/heads/iterdev/{team.session}"
    repo.git("update-ref", branch, other)

    restored = undo(team.repository)

    assert restored.taken == (branch,)
    assert repo.git("rev-parse", branch) == other


def test_a_session_that_is_neither_archived_nor_accepted_keeps_everything(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    before = refs(repo)

    done = clean(team.repository)

    assert refs(repo) == before
    assert reasons(done) == {"the session is neither archived nor accepted"}


def test_commits_that_are_on_no_branch_of_the_user_stay(repo: Repo, team: Team) -> None:
    repo.behave(**{"DEV-001#1": {"write": {"half.txt": "half\n"}, "exit": 1}})
    team.run(pipeline="patch")
    team.retry()
    accept(team.repository, team.session)

    done = clean(team.repository)

    assert refs(repo) == [f"refs/iterdev/{team.session}/DEV-001/1"]
    assert reasons(done) == {"it has commits that are on none of your branches"}


def test_an_archived_session_whose_work_was_not_taken_over_stays(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    archive(team.repository, team.session)
    before = refs(repo)

    clean(team.repository)

    assert refs(repo) == before


def test_a_branch_that_is_checked_out_stays(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    accept(team.repository, team.session)
    repo.git("switch", "-q", f"iterdev/{team.session}")

    done = clean(team.repository)

    assert f"it is checked out in {repo.path}" in reasons(done)
    assert repo.git("rev-parse", "HEAD")


def test_refs_of_sessions_that_are_not_known_here_stay(repo: Repo, team: Team) -> None:
    repo.git("update-ref", "refs/iterdev/ids-other/DEV-001/1", "HEAD")

    done = clean(team.repository)

    assert reasons(done) == {"no session of this name is known here"}


def test_what_was_removed_more_than_30_days_ago_goes_for_good(repo: Repo, team: Team) -> None:
    old, new = (int(clock.now()) - days * 86400 for days in (31, 29))
    for at in (old, new):
        repo.git("update-ref", f"{session_refs.TRASH}/{at}/heads/iterdev/ids-{at}", "HEAD")

    done = clean(team.repository)

    assert names(done, "removed ref") == [f"refs/heads/iterdev/ids-{old}"]
    assert undo(team.repository).refs == (f"refs/heads/iterdev/ids-{new}",)


def test_removed_commits_survive_garbage_collection_until_then(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    start = repo.git("rev-parse", "main")
    accept(team.repository, team.session)
    tip = repo.git("rev-parse", "main")
    clean(team.repository)
    repo.git("reset", "-q", "--hard", start)
    repo.git("reflog", "expire", "--expire=now", "--all")

    repo.git("gc", "-q", "--prune=now")

    undo(team.repository)
    assert repo.git("rev-parse", f"iterdev/{team.session}") == tip


def test_worktrees_and_temporary_folders_that_nothing_uses_go_with_their_size(team: Team) -> None:
    team.run(pipeline="patch")
    pool = paths.workspaces_of(team.repository.top) / team.session
    stray = paths.temps() / "0123456789ab"
    for folder in (pool / "1" / "tree", stray):
        folder.mkdir(parents=True)
        (folder / "data").write_bytes(b"x" * 10_000)

    done = clean(team.repository)

    assert names(done, "worktrees") == [str(pool)]
    assert names(done, "temporary folder") == [str(stray)]
    assert done.freed >= 20_000
    assert not pool.exists()
    assert not stray.exists()


def test_work_that_a_killed_engine_left_is_not_removed(team: Team) -> None:
    team.run(pipeline="patch")
    slot = paths.workspaces_of(team.repository.top) / team.session / "1"
    slot.mkdir(parents=True)
    (slot / "attempt.json").write_text('{"task": "DEV-001", "number": 1, "base": "HEAD"}')

    done = clean(team.repository)

    (kept,) = (item for item in done.kept if item.kind == "worktrees")
    assert re.search("not saved yet: iterdev resume", kept.why)
    assert slot.exists()


def test_a_session_whose_branch_was_removed_goes_on_from_its_work(repo: Repo, team: Team) -> None:
    team.run(pipeline="patch")
    accept(team.repository, team.session)
    clean(team.repository)
    repo.write("more.txt", "more\n")
    users = repo.commit()

    request_update(team.repository, team.session)
    run = team.resume()

    assert run.succeeded, run.lines
    assert repo.git("rev-parse", f"iterdev/{team.session}") == users


def test_environments_that_were_not_used_for_30_days_go(team: Team, tmp_path: Path) -> None:
    cache = Cache(paths.environments())
    for key, days in (("old", 31), ("new", 29)):
        modules = tmp_path / key
        modules.mkdir()
        made = Made(ecosystem="node", source="package-lock.json", places={})
        entry = cache.publish(key, made, {"node_modules": modules}, {})
        used = clock.now() - days * 86400
        os.utime(entry.folder / "used", (used, used))

    done = clean(team.repository)

    assert names(done, "environment") == [str(paths.environments() / "old")]
    assert [entry.key for entry in cache.entries()] == ["new"]
