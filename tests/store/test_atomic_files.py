import fcntl
import os
from pathlib import Path

import pytest

from iterdev.core.errors import HostError
from iterdev.store import atomic_files


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_written_with_its_folders_and_nothing_beside_it(tmp_path: Path, durable: object) -> None:
    atomic_files.write(tmp_path / "a" / "b" / "c.txt", "ä\r\nb\n", durable=bool(durable))

    assert (tmp_path / "a" / "b" / "c.txt").read_bytes() == "ä\r\nb\n".encode()
    assert names(tmp_path / "a" / "b") == ["c.txt"]


def test_a_reader_of_the_old_file_keeps_the_whole_old_text(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    atomic_files.write(path, "old text")

    with path.open() as reader:
        atomic_files.write(path, "new")
        seen = reader.read()

    assert (seen, path.read_text()) == ("old text", "new")


def test_a_text_that_cannot_be_written_leaves_the_old_one_and_no_rest(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    atomic_files.write(path, "old")
    (tmp_path / f"file.txt{atomic_files.SUFFIX}").symlink_to("/dev/full")

    with pytest.raises(HostError, match="the disk is full") as failure:
        atomic_files.write(path, "new")

    assert f'Cannot write "{path}"' in failure.value.message
    assert "free some space" in failure.value.hint
    assert (path.read_text(), names(tmp_path)) == ("old", ["file.txt"])


def test_a_folder_that_is_a_file_is_an_error_of_the_host(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    for attempt in (
        lambda: atomic_files.write(tmp_path / "file" / "x.txt", ""),
        lambda: atomic_files.create(tmp_path / "file" / "x.txt", ""),
        lambda: atomic_files.extend(tmp_path / "file" / "x.txt", ""),
        lambda: atomic_files.make_folder(tmp_path / "file" / "folder"),
    ):
        with pytest.raises(HostError, match="Cannot write"):
            attempt()


def test_the_rest_of_a_killed_writer_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / f"file.txt{atomic_files.SUFFIX}").write_text("a rest that is longer than the text")

    atomic_files.write(tmp_path / "file.txt", "text")

    assert (tmp_path / "file.txt").read_text() == "text"
    assert names(tmp_path) == ["file.txt"]


def test_a_file_that_is_there_is_not_created_again(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"

    atomic_files.create(path, "first")
    atomic_files.create(path, "second")

    assert path.read_text() == "first"


def test_lines_are_added_behind_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"

    atomic_files.extend(path, "one\n")
    atomic_files.extend(path, "two\nthree\n")

    assert path.read_text() == "one\ntwo\nthree\n"


def test_half_a_line_is_ended_before_others_follow(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_bytes(b"whole\nhal")

    atomic_files.extend(path, "next\n")

    assert path.read_bytes() == b"whole\nhal\nnext\n"


def test_lines_that_cannot_be_added_are_an_error_of_the_host() -> None:
    with pytest.raises(HostError, match=r'Cannot write "/dev/full"'):
        atomic_files.extend(Path("/dev/full"), "line\n")


def test_a_pipe_in_the_place_of_a_file_is_read_as_nothing_and_renamed_before_lines_are_added(tmp_path: Path) -> None:
    path = tmp_path / "board.ndjson"
    os.mkfifo(path)

    read = atomic_files.read(path)
    atomic_files.extend(path, "line\n")

    assert read == b""
    assert path.read_text() == "line\n"
    assert (tmp_path / "board.ndjson.no-file").is_fifo()


def test_a_pipe_in_the_place_of_a_temporary_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / f"file.txt{atomic_files.SUFFIX}")

    atomic_files.write(tmp_path / "file.txt", "new")

    assert (tmp_path / "file.txt").read_text() == "new"


def test_somebody_who_keeps_a_file_locked_does_not_keep_lines_from_being_added(tmp_path: Path) -> None:
    path = tmp_path / "board.ndjson"
    with path.open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        atomic_files.extend(path, "line\n")

    assert path.read_text() == "line\n"


def test_a_file_without_end_is_read_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.touch()
    os.truncate(path, 10 * atomic_files.LARGEST)

    assert len(atomic_files.read(path) or b"") == atomic_files.LARGEST
