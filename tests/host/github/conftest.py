from collections.abc import Iterator

import pytest
from tests.github_server import GitHub, github_server


@pytest.fixture
def server() -> Iterator[GitHub]:
    with github_server() as serving:
        yield serving
