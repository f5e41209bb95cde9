from tests.conftest import Repo


def test_x(repo: Repo):
    assert isinstance(repo, Repo)
