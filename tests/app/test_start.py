"""How sessions are created, also by several processes at once."""

from concurrent.futures import ThreadPoolExecutor

from tests.app.conftest import Sessions

from iterdev.app.start import Request, start
from iterdev.teams.development.roles import Pipeline

AT_ONCE = 12


def test_sessions_of_the_same_text_that_start_at_once_wait_for_each_other(sessions: Sessions) -> None:
    request = Request(requirement="Add a greeting", pipeline=Pipeline.patch)
    processes = [sessions.open() for _ in range(AT_ONCE)]

    with ThreadPoolExecutor(AT_ONCE) as executor:
        names = list(executor.map(lambda repository: start(repository, request), processes))

    assert len(set(names)) == AT_ONCE
    assert set(sessions.repository.sessions()) == set(names)
    assert set(sessions.repo.git("branch", "--list", "iterdev/*", "--format=%(refname:short)").split()) == {
        f"iterdev/{name}" for name in names
    }
