"""Whatever a session was left in, doctor names and repairs it, and resume goes on with or without that."""

import os
import re
import shutil
import signal
from collections.abc import Callable

import pytest
from tests.clis import command_line, pids_with
from tests.conftest import Repo
from tests.e2e.conftest import agent_at_work, eventually
from tests.e2e.test_recovery import PATCH
from tests.e2e.test_recovery import kill_while_the_developer_works as killed
from tests.session_files import processes, statuses

from iterdev.store.journal import NAME


def killed_with_its_supervisor(repo: Repo) -> None:
    with agent_at_work(repo, *PATCH, **{"DEV-001": {"run": "(setsid sleep 600 &)", "sleep": 600}}) as running:
        eventually(lambda: any(line == "sleep 600" for line in processes(repo)), "a daemon")
        watching = [pid for pid in pids_with(str(repo.home)) if "processes/supervisor.py" in command_line(pid)]
        for pid in (running.pid, *watching):
            os.kill(pid, signal.SIGKILL)
        running.process.wait()
    repo.behave()


def damaged_index(repo: Repo) -> None:
    killed(repo)
    (repo.path / ".git" / "worktrees" / "tree" / "index").write_bytes(b"garbage")


def damaged_head(repo: Repo) -> None:
    killed(repo)
    (repo.path / ".git" / "worktrees" / "tree" / "HEAD").write_bytes(b"garbage")


def link_to_nowhere(repo: Repo) -> None:
    (killed(repo) / ".git").write_text("gitdir: /nowhere\n")


def forgotten_worktree(repo: Repo) -> None:
    killed(repo)
    shutil.rmtree(repo.path / ".git" / "worktrees")


def forged_borrower(repo: Repo) -> None:
    (killed(repo).parent / "attempt.json").write_text('{"task": "../../x", "number": 1, "base": "--help"}')


def renamed_worktree(repo: Repo) -> None:
    tree = killed(repo)
    tree.rename(tree.with_name("renamed"))


def renamed_repository(repo: Repo) -> None:
    killed(repo)
    repo.path = repo.path.rename(repo.path.with_name("renamed"))


def checked_out_branch(repo: Repo) -> None:
    killed(repo)
    repo.git("switch", "-q", f"iterdev/{repo.folder().name}")


def foreign_branch(repo: Repo) -> None:
    killed(repo)
    orphan = repo.git("commit-tree", "-m", "foreign", "HEAD^{tree}")
    repo.git("update-ref", f"refs/heads/iterdev/{repo.folder().name}", orphan)


def deleted_branch(repo: Repo) -> None:
    killed(repo)
    repo.git("update-ref", "-d", f"refs/heads/iterdev/{repo.folder().name}")


def abandoned_lock_of_a_worktree(repo: Repo) -> None:
    killed(repo)
    admin = repo.path / ".git" / "worktrees" / "tree9"
    admin.mkdir()
    (admin / "locked").write_text("initializing")
    os.utime(admin / "locked", (0, 0))


def objects_of_a_full_disk(repo: Repo) -> None:
    killed(repo)
    left = repo.path / ".git" / "objects" / "12" / "tmp_obj_AbCdEf"
    left.parent.mkdir(exist_ok=True)
    left.touch()
    os.utime(left, (0, 0))


def start_that_was_cut_off(repo: Repo) -> None:
    killed(repo)
    (repo.folder().parent / "ids-other-20200101").mkdir()
    repo.git("branch", "iterdev/ids-other-20200101")


def damaged_journal(repo: Repo) -> None:
    killed(repo)
    journal = repo.path / ".workflow" / NAME
    for name in (f"{NAME}-wal", f"{NAME}-shm"):
        journal.with_name(name).unlink(missing_ok=True)
    data = journal.read_bytes() or b"\0" * 8192
    journal.write_bytes(data[:100] + b"\xff" * 4000 + data[4100:])


STATES: list[Callable[[Repo], object]] = [
    killed,
    killed_with_its_supervisor,
    damaged_index,
    damaged_head,
    link_to_nowhere,
    forgotten_worktree,
    forged_borrower,
    renamed_worktree,
    renamed_repository,
    checked_out_branch,
    foreign_branch,
    deleted_branch,
    abandoned_lock_of_a_worktree,
    objects_of_a_full_disk,
    start_that_was_cut_off,
    damaged_journal,
]
in_every_state = pytest.mark.parametrize("leave", STATES, ids=lambda leave: leave.__name__)


def left(repo: Repo) -> list[str]:
    """What nobody needs any more; what was set aside is kept on purpose."""
    kept = [path for path in (repo.home / "iterdev").rglob("*") if "set-aside" not in path.parts]
    objects = [*(repo.path / ".git" / "objects").glob("*/tmp_obj_*")]
    return [*processes(repo), *map(str, kept), *repo.worktrees()[1:], *map(str, objects)]


@in_every_state
def test_resume_goes_on_in_one_go(repo: Repo, leave: Callable[[Repo], object]) -> None:
    leave(repo)

    done = repo.iterdev("resume", "ids-fix")

    assert done.returncode == 0, done.stdout + done.stderr
    assert set(statuses(next(repo.path.glob(".workflow/.csv-wave/ids-fix*"))).values()) == {"completed"}
    assert processes(repo) == []


@in_every_state
def test_doctor_repairs_it_and_no_hint_leads_back(repo: Repo, leave: Callable[[Repo], object]) -> None:
    leave(repo)

    named = repo.iterdev("doctor")
    fixed = repo.iterdev("doctor", "--fix")
    after = repo.iterdev("doctor")
    hints = re.findall(r"hint: (.*)", fixed.stdout)
    done = repo.iterdev("resume", "ids-fix")

    assert named.returncode == 1 or "journal that was damaged" in named.stdout
    assert (fixed.returncode, after.returncode) == (0, 0), named.stdout + fixed.stdout + after.stdout
    assert [hint for hint in hints if "iterdev" in hint] == []
    assert done.returncode == 0, done.stdout + done.stderr
    assert left(repo) == []


def test_an_accept_that_was_cut_off_is_named_and_taken_back(repo: Repo) -> None:
    repo.iterdev(*PATCH)
    session = repo.folder().name
    repo.git("update-ref", f"refs/iterdev/{session}/_accepting", "HEAD")
    (repo.path / ".git" / "index.lock").touch()
    (repo.path / "DEV-001.txt").touch()

    named = repo.iterdev("doctor")
    fixed = repo.iterdev("doctor", "--fix")

    assert f"!! accept of {session}: it was cut off" in named.stdout
    assert f"hint: iterdev accept {session}" in named.stdout
    assert (fixed.returncode, repo.git("status", "--porcelain")) == (0, "")
    assert not (repo.path / ".git" / "index.lock").exists()


def test_an_agent_may_look_but_not_repair(repo: Repo) -> None:
    inside = {"ITERDEV_TASK": "DEV-001", "ITERDEV_SESSION": "ids-x", "ITERDEV_RESULT": "/x"}

    looked, repaired = (repo.iterdev("doctor", *words, **inside) for words in ((), ("--fix",)))

    assert (looked.returncode, repaired.returncode) == (0, 2)
    assert "`iterdev doctor --fix` cannot be used inside of" in repaired.stderr
