"""Files with keys: private, readable by people, and extended to replace a key."""

from pathlib import Path

import pytest

from iterdev.core.errors import UserError
from iterdev.execution.temporal.keys import add_key, read_keys


def test_a_new_key_is_in_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    path = tmp_path / "config" / "remote.key"

    made = add_key(str(path))

    assert read_keys(str(path)) == made
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_second_key_opens_but_does_not_seal_yet(tmp_path: Path) -> None:
    path = str(tmp_path / "remote.key")
    first = add_key(path)

    both = add_key(path)

    assert read_keys(path) == both
    assert both.sealing == first.sealing
    assert len({key.id for key in both.keys}) == 2


def test_the_line_that_was_moved_to_the_top_seals(tmp_path: Path) -> None:
    path = tmp_path / "remote.key"
    add_key(str(path))
    both = add_key(str(path))

    path.write_text("".join(key.line for key in reversed(both.keys)))

    assert read_keys(str(path)).sealing == both.keys[1]


def test_a_missing_key_is_an_error_with_the_command_that_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "remote.key"

    with pytest.raises(UserError, match="There is no key at") as caught:
        read_keys(str(path))

    assert caught.value.hint.startswith(f"iterdev key new {path}")


@pytest.mark.parametrize("text", ["", "# nothing\n", "one\n", "a c2hvcnQ=\n", "a b c\n", "a !!\n"])
def test_a_file_without_a_whole_key_is_refused_and_not_shown(tmp_path: Path, text: str) -> None:
    path = tmp_path / "remote.key"
    path.write_text(text)
    path.chmod(0o600)

    with pytest.raises(UserError) as caught:
        read_keys(str(path))

    assert str(path) in caught.value.message
    assert "c2hvcnQ" not in caught.value.message


def test_a_key_that_everybody_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "remote.key"
    add_key(str(path))
    path.chmod(0o644)

    with pytest.raises(UserError, match="Every user of this machine") as caught:
        read_keys(str(path))

    assert caught.value.hint == f"chmod 600 {path}"


def test_the_secret_is_in_no_representation(tmp_path: Path) -> None:
    ring = add_key(str(tmp_path / "remote.key"))

    assert repr(ring.sealing.secret)[2:-1] not in repr(ring)
