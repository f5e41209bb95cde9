"""What every view holds to, whatever happens in a session."""

from tests.core.session.test_properties import histories, holds_for
from tests.core.simulator import History as Told

from iterdev.core.results import Usage
from iterdev.core.session.events import AttemptStarted
from iterdev.core.views.event_lines import event_lines
from iterdev.core.views.history import AttemptOutcome, History, evolve
from iterdev.core.views.layout import layout
from iterdev.core.views.session import session_view
from iterdev.teams.development.team import DEVELOPMENT


@holds_for(histories)
def test_the_lines_of_a_journal_are_in_its_order_and_each_is_one_line(told: Told) -> None:
    state, lines = event_lines(None, told.entries, DEVELOPMENT)

    assert state == told.state, told
    assert [line.seq for line in lines] == sorted(line.seq for line in lines), told
    assert all(line.text and "\n" not in line.text for line in lines), told


@holds_for(histories)
def test_the_history_has_every_attempt_once_and_all_that_was_spent(told: Told) -> None:
    history = evolve(History(), told.entries, DEVELOPMENT)

    started = [(event.task, event.number) for event in told.seen(AttemptStarted) if isinstance(event, AttemptStarted)]
    spent = sum((attempt.usage for attempt in history.attempts), Usage())
    assert [(attempt.task, attempt.number) for attempt in history.attempts] == started, told
    assert spent.tokens == told.state.spending.total.tokens, told
    running = [one.task for one in history.attempts if one.outcome is AttemptOutcome.running]
    assert sorted(running) == sorted(told.state.attempts.running), told


@holds_for(histories)
def test_a_picture_has_every_task_once(told: Told) -> None:
    drawn = layout(told.state)

    tasks = [task for column in drawn.columns for task in column.tasks]
    omitted = sum(sum(column.omitted.values()) for column in drawn.columns)
    assert len(tasks) == len(set(tasks)), told
    assert len(tasks) + omitted == len(told.state.tasks.plan), told


@holds_for(histories, examples=30)
def test_what_needs_the_user_has_a_reason_and_nothing_is_asked_of_a_session_that_works(told: Told) -> None:
    for step in told.steps:
        for alive in (True, False):
            needs = session_view(step.state, DEVELOPMENT, engine_alive=alive).needs
            assert all(need.text for need in needs), told
            assert alive or step.state.lifecycle.is_finished or needs, told
