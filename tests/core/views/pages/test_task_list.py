"""The tasks of a session as a list of pages."""

from tests.core.conftest import Story, task

from iterdev.core.types import Status
from iterdev.core.views.pages.task_list import SIZE, TaskFilter, task_list
from iterdev.teams.development.team import DEVELOPMENT


def test_many_tasks_are_shown_page_by_page_in_the_order_of_their_waves() -> None:
    state = Story(*(task(f"DEV-{number:04}") for number in range(SIZE + 5))).state

    first, last = task_list(state, DEVELOPMENT, TaskFilter()), task_list(state, DEVELOPMENT, TaskFilter(), 99)

    assert (len(first.tasks), first.pages, first.matching) == (SIZE, 2, SIZE + 5)
    assert (len(last.tasks), last.page) == (5, 2)


def test_a_filter_looks_at_the_status_the_role_and_the_words() -> None:
    state = Story(task("DEV-001"), task("DEV-002", "DEV-001")).state

    words = task_list(state, DEVELOPMENT, TaskFilter(text="dev-002"))
    none = task_list(state, DEVELOPMENT, TaskFilter(status=Status.failed))
    unknown = task_list(state, DEVELOPMENT, TaskFilter(status="odd"))

    assert [one.id for one in words.tasks] == ["DEV-002"]
    assert (none.tasks, unknown.tasks, none.total) == ((), (), 2)
