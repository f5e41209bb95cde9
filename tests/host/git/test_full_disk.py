import os
from pathlib import Path

import pytest

from iterdev.host.git.full_disk import remove_temporary_objects

BEGAN = 1_000_000.0


@pytest.fixture
def objects(tmp_path: Path) -> Path:
    for name in ("ab/tmp_obj_1", "pack/tmp_pack_2", "tmp_objdir-3/ab/cd", "ab/cdef", "pack/pack-1.pack"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("half")
    for path in tmp_path.rglob("*"):
        os.utime(path, (BEGAN + 10, BEGAN + 10))
    return tmp_path


def files(objects: Path) -> set[str]:
    return {str(path.relative_to(objects)) for path in objects.rglob("*") if path.is_file()}


def test_what_git_had_begun_to_write_is_removed_and_nothing_else(objects: Path) -> None:
    remove_temporary_objects(objects, BEGAN)

    assert files(objects) == {"ab/cdef", "pack/pack-1.pack"}


def test_what_was_begun_before_or_is_still_written_stays(objects: Path) -> None:
    os.utime(objects / "ab" / "tmp_obj_1", (BEGAN - 10, BEGAN - 10))

    with (objects / "pack" / "tmp_pack_2").open("ab"), (objects / "tmp_objdir-3" / "ab" / "cd").open("ab"):
        remove_temporary_objects(objects, BEGAN)

    assert {"ab/tmp_obj_1", "pack/tmp_pack_2", "tmp_objdir-3/ab/cd"} <= files(objects)
