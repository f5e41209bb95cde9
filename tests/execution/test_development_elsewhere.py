"""Sessions of the development team whose attempts run in other processes: a part of the tests of `tests/app`.

CONTRIBUTING.md has the command that runs all of them in this way.
"""

from pathlib import Path

import pytest
from tests.app.conftest import Sessions, Team, sessions  # noqa: F401 - a fixture
from tests.app.test_conflicts import (  # noqa: F401 - run here as well
    test_a_conflict_task_need_not_know_git_and_all_of_the_work_comes_in,
    test_with_abort_the_second_one_is_done_again_on_what_landed_and_its_work_is_kept,
)
from tests.app.test_critic_loop import (  # noqa: F401 - run here as well
    test_a_fix_that_fails_skips_its_review_and_is_told,
    test_failing_measured_tests_raise_a_round_and_are_measured_again,
)
from tests.app.test_patch import (  # noqa: F401 - run here as well
    test_a_tester_that_mends_the_change_saves_the_patch,
    test_failures_that_were_there_before_are_not_blamed_on_the_change,
)
from tests.app.test_sprints import (  # noqa: F401 - run here as well
    test_feedback_between_two_sprints_is_planned_first_and_addressed_by_the_work,
)
from tests.execution.elsewhere import elsewhere


@pytest.fixture
def team(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> Team:  # noqa: F811
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    return Team(sessions, elsewhere)
