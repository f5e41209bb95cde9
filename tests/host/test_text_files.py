"""Text files that a person wrote or named."""

import os
from pathlib import Path

import pytest

from iterdev.host import text_files


def test_a_text_is_read_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("grün\r\n".encode())

    assert text_files.read(tmp_path / "a.txt") == "grün\r\n"


def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(OSError, match="not a regular file"):
        text_files.read(tmp_path / "pipe")


@pytest.mark.parametrize("name", ["/dev/zero", "."])
def test_a_device_and_a_folder_are_refused(name: str) -> None:
    with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
        text_files.read(Path(name))


def test_a_name_with_a_null_character_is_an_error_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="null character"):
        text_files.read(tmp_path / "a\0b")


@pytest.mark.parametrize(("size", "fits"), [(2**20, True), (2**20 + 1, False)])
def test_a_file_may_be_only_so_large(tmp_path: Path, size: int, *, fits: bool) -> None:
    (tmp_path / "large").write_bytes(b"x" * size)

    if fits:
        assert len(text_files.read(tmp_path / "large", most=2**20)) == size
    else:
        with pytest.raises(OSError, match="larger than 1 MiB"):
            text_files.read(tmp_path / "large", most=2**20)
