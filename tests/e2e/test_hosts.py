"""The commands for more than one machine, as they are typed."""

import json

from tests.conftest import Repo


def test_a_new_key_is_written_once_and_never_overwritten(repo: Repo) -> None:
    first = repo.iterdev("key", "new", "remote.key")
    second = repo.iterdev("key", "new", "remote.key", "--json")

    assert first.returncode == 0
    assert "Copy it to every host" in first.stdout
    assert json.loads(second.stdout)["seals"] is False
    assert len((repo.path / "remote.key").read_text().splitlines()) == 3
