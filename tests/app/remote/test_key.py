"""The key that engines and hosts share."""

from pathlib import Path

from tests.conftest import Repo

from iterdev.app.remote.key import new_key
from iterdev.execution.temporal.keys import read_keys


def test_the_first_key_of_a_file_seals_and_a_second_one_does_not(tmp_path: Path) -> None:
    file = str(tmp_path / "remote.key")

    first, second = new_key(file, tmp_path), new_key(file, tmp_path)

    assert (first.seals, second.seals) == (True, False)
    assert [key.id for key in read_keys(file).keys] == [first.id, second.id]


def test_without_a_file_the_key_goes_where_the_repository_expects_it(repo: Repo, tmp_path: Path) -> None:
    file = tmp_path / "of-the-team.key"
    repo.write("iterdev.toml", f'[remote]\nkey = "{file}"\n')

    made = new_key(None, repo.path)

    assert made.file == str(file)
    assert file.exists()
