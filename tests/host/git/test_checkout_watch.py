from collections.abc import Callable
from pathlib import Path

import pytest
from tests.conftest import Repo

from iterdev.host.git.checkout import CheckoutWatch


@pytest.fixture
def watched(project: Repo) -> CheckoutWatch:
    (project.path / ".git" / "info" / "exclude").write_text("ignored/\n*.log\n")
    (project.path / "ignored").mkdir()
    (project.path / "ignored" / "file").write_text("")
    return CheckoutWatch(project.path)


@pytest.fixture
def asked(project: Repo, tmp_path: Path) -> Callable[[], int]:
    """How often git was asked for the status."""
    traces = tmp_path / "traces"
    traces.mkdir()
    with (project.home / ".gitconfig").open("a") as file:
        file.write(f"[trace2]\n\teventTarget = {traces}\n")
    return lambda: sum('"status"' in trace.read_text() for trace in traces.iterdir())


def test_an_unchanged_checkout_is_not_looked_at_by_git_again(watched: CheckoutWatch, asked: Callable[[], int]) -> None:
    watched.changes()
    before = asked()

    assert watched.changes() == []

    assert asked() == before


def test_every_change_is_told_once(project: Repo, watched: CheckoutWatch) -> None:
    (project.path / "new.txt").write_text("new")
    first = watched.changes()
    (project.path / "new.txt").write_text("old")

    assert (first, watched.changes()) == (["new.txt"], [])


def test_a_change_of_equal_size_is_noticed(project: Repo, watched: CheckoutWatch) -> None:
    name = next(name for name in project.git("ls-files").splitlines() if (project.path / name).stat().st_size)
    file = project.path / name
    watched.changes()

    file.write_bytes(bytes(255 - byte for byte in file.read_bytes()))

    assert watched.changes() == [name]


def test_what_git_ignores_is_no_change(project: Repo, watched: CheckoutWatch) -> None:
    (project.path / "ignored" / "more").write_text("")
    (project.path / "a.log").write_text("")

    assert watched.changes() == []


def test_what_git_does_not_ignore_any_more_is_noticed(project: Repo, watched: CheckoutWatch) -> None:
    watched.changes()

    (project.path / ".git" / "info" / "exclude").write_text("")

    assert "ignored/file" in watched.changes()


def test_what_was_added_to_the_index_is_noticed(project: Repo, watched: CheckoutWatch) -> None:
    (project.path / "new.txt").write_text("new")
    watched.changes()

    project.git("add", "new.txt")

    assert watched.changes() == ["new.txt"]


def test_a_branch_that_was_moved_is_noticed(project: Repo, watched: CheckoutWatch) -> None:
    watched.changes()

    project.git("branch", "other")

    assert [change.split()[:2] for change in watched.changes()] == [["branch", "other"]]


def test_what_changes_in_the_pause_after_a_long_look_is_told_in_the_end(project: Repo) -> None:
    watch = CheckoutWatch(project.path, long=-1)
    (project.path / "one.txt").write_text("")
    first = watch.changes()
    (project.path / "two.txt").write_text("")

    assert (first, watch.changes(), watch.changes(last=True)) == (["one.txt"], [], ["two.txt"])


def test_the_last_call_looks_only_if_a_look_was_left_out(project: Repo, watched: CheckoutWatch) -> None:
    watched.changes()
    (project.path / "mine.txt").write_text("")

    assert watched.changes(last=True) == []
