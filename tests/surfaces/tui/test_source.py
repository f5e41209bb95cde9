import pytest
from tests.conftest import Repo

from iterdev.app.sessions import Repository
from iterdev.core.errors import UserError
from iterdev.surfaces.tui.source import RepositorySource


def test_what_is_asked_of_a_session_where_there_is_none_is_refused_in_a_sentence(repo: Repo) -> None:
    source = RepositorySource(Repository(repo.path), None)

    assert source.look()
    with pytest.raises(UserError, match="There is no session yet"):
        source.changed()
