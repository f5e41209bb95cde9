import pytest

from iterdev.core.session.attempts import Attempts, evolve
from iterdev.core.session.events import AttemptStarted, RollbackStarted, TaskReported
from iterdev.core.types import TaskId

DEV = TaskId("DEV-001")


@pytest.mark.parametrize(
    "event",
    [
        TaskReported(task=DEV, findings="done elsewhere"),
        RollbackStarted(target="wave-1", snapshot="s", tip="t", rows=(), removed=(DEV,), answers={}),
    ],
    ids=["reported", "rolled back"],
)
def test_an_attempt_that_is_not_waited_for_any_more_does_not_have_the_next_one_aborted(event: object) -> None:
    started = AttemptStarted(DEV, 1, "mine", "base", where="hosts")
    part = Attempts(running={DEV: started}, aborted={DEV: "it waited for locks"}, hosts={DEV: "one"})

    after = evolve(part, event)

    assert (after.running, after.aborted, after.hosts) == ({}, {}, {})
