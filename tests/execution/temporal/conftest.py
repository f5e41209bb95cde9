"""One real server for the tests of a worker of pytest; each test has its own names on it."""

from collections.abc import Iterator

import pytest
from tests import temporal_server
from tests.temporal_server import TemporalServer


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TemporalServer]:
    with temporal_server.running(tmp_path_factory.mktemp("temporal")) as running:
        yield running
