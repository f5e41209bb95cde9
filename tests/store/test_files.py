from tests.store.conftest import Story
from tests.conftest import Repo
def test_x(repo: Repo):
    assert isinstance(repo, Repo)
