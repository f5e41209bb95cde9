import os
from collections.abc import Callable
from pathlib import Path

import pytest

from iterdev.host import folder_stamp as stamps
from iterdev.host.folder_stamp import COARSE, FolderStamp, folder_stamp


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    (top / "a b" / "deep").mkdir(parents=True)
    (top / "a b" / "deep" / "file").write_text("one")
    (top / "link").symlink_to("a b")
    return top


def taken(folder: Path, *ignored: str) -> FolderStamp:
    found = folder_stamp(folder, ignored)
    assert found
    return found


def same_size(folder: Path) -> None:
    (folder / "a b" / "deep" / "file").write_text("two")


def with_the_old_time(folder: Path) -> None:
    file = folder / "a b" / "deep" / "file"
    before = file.stat()
    file.write_text("two")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))


def replaced(folder: Path) -> None:
    new = folder.parent / "new"
    new.write_text("one")
    new.rename(folder / "a b" / "deep" / "file")


def made(folder: Path) -> None:
    (folder / "a b" / "new").write_text("")


def deleted(folder: Path) -> None:
    (folder / "a b" / "deep" / "file").unlink()


def executable(folder: Path) -> None:
    (folder / "a b" / "deep" / "file").chmod(0o755)


def led_elsewhere(folder: Path) -> None:
    (folder / "link").unlink()
    (folder / "link").symlink_to("a c")


@pytest.mark.parametrize(
    "change",
    [same_size, with_the_old_time, replaced, made, deleted, executable, led_elsewhere],
    ids=lambda one: one.__name__,
)
def test_a_change_is_noticed(folder: Path, change: Callable[[Path], None]) -> None:
    before = taken(folder)

    change(folder)

    assert not before.still_holds(taken(folder), folder.parent)


def test_without_a_change_a_stamp_holds(folder: Path) -> None:
    before = FolderStamp(taken(folder).entries, taken(folder).devices, taken(folder).taken + 2 * COARSE)

    (folder / "a b" / "deep" / "file").read_text()

    assert before.still_holds(taken(folder), folder.parent)


def test_what_was_written_a_moment_before_says_nothing_where_times_are_coarse(folder: Path) -> None:
    before = taken(folder)

    nowhere = folder / "missing"

    assert not before.still_holds(taken(folder), nowhere)


def test_ignored_folders_do_not_count(folder: Path) -> None:
    before = taken(folder).without(["a b/deep"])

    (folder / "a b" / "deep" / "more").write_text("")

    assert before.entries == taken(folder, "a b/deep").entries


def test_a_repository_inside_has_no_stamp(folder: Path) -> None:
    (folder / "a b" / ".git").mkdir()

    assert folder_stamp(folder) is None


def test_a_folder_with_too_much_in_it_has_no_stamp(folder: Path) -> None:
    assert folder_stamp(folder, most=2) is None


def test_a_missing_file_has_an_empty_stamp(tmp_path: Path) -> None:
    assert stamps.file_stamp(tmp_path / "missing") == ()
