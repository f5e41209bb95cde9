from pathlib import Path

import pytest

from iterdev.host import paths


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    for name in ("ITERDEV_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)


def test_worktrees_live_in_the_users_state_folder() -> None:
    assert paths.state_root() == Path("/home/somebody/.local/state/iterdev")


@pytest.mark.parametrize("value", ["/state", ""])
def test_the_state_folder_is_where_the_desktop_says(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", value)

    assert paths.state_root() == Path(value or "/home/somebody/.local/state") / "iterdev"


def test_the_user_can_move_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    monkeypatch.setenv("ITERDEV_HOME", "/elsewhere")

    assert paths.state_root() == Path("/elsewhere")


def test_repositories_of_the_same_name_do_not_share_their_worktrees() -> None:
    first, second = paths.workspaces_of(Path("/a/project")), paths.workspaces_of(Path("/b/project"))

    assert first != second
    assert first == paths.workspaces_of(Path("/a/project"))
    assert {first.parent, second.parent} == {paths.state_root()}
    assert first.name.startswith("project-")


def test_temp_dirs_leave_room_for_the_name_of_a_socket() -> None:
    assert paths.temps() == Path("/home/somebody/.local/state/iterdev/tmp")
