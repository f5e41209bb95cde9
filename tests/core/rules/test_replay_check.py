"""A journal, decided again."""

import sys
from collections.abc import Callable
from functools import partial
from types import FrameType

import msgspec
import pytest
from tests.core.conftest import Outcome, Story, done, measured, review, session, task

from iterdev.core.collaboration import messages
from iterdev.core.policy import Policy
from iterdev.core.rules.replay_check import OFTEN, compare
from iterdev.core.rules.schedule import Record, Start
from iterdev.core.session import events
from iterdev.core.session.state import State
from iterdev.core.session.tasks import Task
from iterdev.core.types import Engine, Status, TaskId
from iterdev.teams.development import events as team_events
from iterdev.teams.development.roles import Pipeline
from iterdev.teams.development.team import DEVELOPMENT, DevelopmentTeam

both_engines = pytest.mark.parametrize("engine", list(Engine))


def driven(*, engine: Engine = Engine.wave, **facts: object) -> Story:
    """A session that an engine has taken up."""
    story = Story(engine=engine, **facts)
    story.happens(events.EngineStarted(1, "base0000"))
    return story


def works(story: Story, verdicts: dict[str, Outcome] | None = None) -> Story:
    """Lets every task be tried until the session is over or asks."""
    while names := story.goes_on():
        story.starts(*names)
        for name in names:
            story.now += 1
            story.ends(name, (verdicts or {}).get(name) or done(f"findings of {name}"))
    return story


BAD = {
    "REVIEW-001": done("bad", review=review(5, "critical")),
    "VERIFY-001": done("bad", verification=measured(0.5)),
    "REVIEW-002": done("good", review=review(9)),
    "VERIFY-002": done("good", verification=measured(1.0)),
}


@both_engines
def test_a_session_with_a_fix_round_replays_without_difference(engine: Engine) -> None:
    story = works(driven(engine=engine, pipeline=Pipeline.sprint), BAD)

    replayed = compare(story.entries, DEVELOPMENT)

    assert story.state.lifecycle.is_over
    assert replayed.difference is None
    assert replayed.entries == len(story.entries)
    assert replayed.decisions > 10


@both_engines
def test_failures_skips_and_forced_convergence_replay_without_difference(engine: Engine) -> None:
    verdicts = {f"REVIEW-00{number}": done("bad", review=review(5)) for number in range(1, 9)}

    forced = works(driven(engine=engine, pipeline=Pipeline.sprint), verdicts)
    failed = works(driven(engine=engine, pipeline=Pipeline.sprint), {"DEV-001": events.Failed(error="no")})

    assert forced.seen(team_events.ConvergenceForced)
    assert failed.seen(events.TaskSkipped)
    assert compare(forced.entries, DEVELOPMENT).difference is None
    assert compare(failed.entries, DEVELOPMENT).difference is None


def test_questions_and_their_answers_replay_without_difference() -> None:
    story = driven(auto=False)
    for gate, choice in (("pipeline", "sprint"), ("plan", "approve")):
        story.goes_on()
        story.happens(events.Paused("waiting"), events.GateAnswered(gate, choice), events.EngineStarted(2, "base0000"))
    works(story, {"DESIGN-001": events.Failed(error="no")})
    story.happens(events.GateAnswered("wave-1", "retry"))
    works(story)

    assert story.state.lifecycle.is_over
    assert compare(story.entries, DEVELOPMENT).difference is None


def test_a_killed_engine_and_the_next_one_replay_without_difference() -> None:
    story = driven(pipeline=Pipeline.sprint)
    story.starts(*story.goes_on())
    story.ends("DESIGN-001", events.Interrupted())
    story.happens(events.PolicyChanged(Policy(auto=True, concurrency=1)), events.EngineStarted(2, "base0000"))
    works(story)

    assert story.state.lifecycle.is_over
    assert compare(story.entries, DEVELOPMENT).difference is None


def test_a_table_that_a_person_edited_replays_without_difference() -> None:
    story = driven(pipeline=Pipeline.sprint)
    story.goes_on()
    story.happens(
        events.TableEdited((events.RowEdit(task=story.row("DESIGN-001"), status=Status.skipped, error="not needed"),))
    )
    works(story)

    assert compare(story.entries, DEVELOPMENT).difference is None


def test_a_retry_replays_without_difference() -> None:
    story = works(driven(pipeline=Pipeline.patch), {"DEV-001": events.Failed(error="no")})
    story.happens(events.TasksReset((TaskId("DEV-001"), TaskId("VERIFY-001"))), events.EngineStarted(2, "base0000"))
    works(story)

    assert story.status("VERIFY-001") == "completed"
    assert compare(story.entries, DEVELOPMENT).difference is None


def test_a_table_by_hand_and_a_rebuilt_journal_were_decided_by_nobody() -> None:
    started = events.SessionStarted(session(by_hand=True), Policy(auto=True))
    rows = (task("DEV-001"),)
    told = [
        started,
        events.TasksAdded(rows),
        team_events.RoundStarted(sprint=1, number=1, raised_by=(), why=""),
        events.Warned("rebuilt"),
    ]
    told += [events.EngineStarted(0, "tip"), events.Finished()]

    assert (
        compare([events.Entry(number, 1.0, event) for number, event in enumerate(told, 1)], DEVELOPMENT).difference
        is None
    )


def test_what_others_write_between_a_decision_and_its_entry_makes_no_difference() -> None:
    story = driven(pipeline=Pipeline.patch)
    (decision,) = story.decides()
    assert isinstance(decision, Record)
    story.happens(events.PolicyChanged(Policy(auto=True, concurrency=2)))
    story.happens(*decision.events)
    works(story)

    assert compare(story.entries, DEVELOPMENT).difference is None


def test_a_start_that_was_decided_just_before_its_wave_ran_out_makes_no_difference() -> None:
    story = driven(pipeline=Pipeline.patch, wave_limit=10)
    names = story.goes_on()
    story.now += 10.01
    story.starts(*names)

    assert compare(story.entries, DEVELOPMENT).difference is None


def tampered(story: Story, kind: type, change: Callable[[events.Event], events.Event]) -> list[events.Entry]:
    """The journal with the first event of a kind changed."""
    place = next(number for number, entry in enumerate(story.entries) if isinstance(entry.event, kind))
    entries = list(story.entries)
    entries[place] = events.Entry(entries[place].seq, entries[place].at, change(entries[place].event))
    return entries


@both_engines
@pytest.mark.parametrize(
    ("kind", "changes", "shown_by"),
    [
        (events.TasksAdded, {"tasks": ()}, events.TasksAdded),
        (events.AttemptStarted, {"number": 7}, events.AttemptStarted),
        (events.AttemptStarted, {"base": "elsewhere"}, events.AttemptStarted),
        (events.AttemptEnded, {"outcome": events.Failed(error="tampered"), "status": Status.failed}, None),
        (team_events.RoundStarted, {"why": "because"}, team_events.RoundStarted),
        (team_events.ReviewPassed, {"task": TaskId("REVIEW-001")}, team_events.ReviewPassed),
        (events.Finished, {"why": "tampered"}, events.Finished),
    ],
)
def test_a_tampered_entry_is_found_where_it_first_matters(
    engine: Engine, kind: type, changes: dict[str, object], shown_by: type | None
) -> None:
    story = works(driven(engine=engine, pipeline=Pipeline.sprint), BAD)
    entries = tampered(story, kind, lambda event: msgspec.structs.replace(event, **changes))

    difference = compare(entries, DEVELOPMENT).difference

    assert difference
    changed = next(entry.seq for entry, was in zip(entries, story.entries, strict=True) if entry != was)
    assert difference.seq >= changed
    assert shown_by is None or (difference.seq == changed and isinstance(difference.recorded, shown_by))
    assert difference.decided


def test_a_lost_entry_is_found_at_the_next_decision() -> None:
    story = works(driven(pipeline=Pipeline.sprint))
    entries = [entry for entry in story.entries if entry.event != events.WaveMerged(1)]

    difference = compare(entries, DEVELOPMENT).difference

    assert difference
    assert difference.recorded == events.WaveStarted(2)
    assert difference.decided == (Record((events.WaveMerged(1),)),)


def test_a_task_that_was_started_too_early_is_found() -> None:
    story = driven(pipeline=Pipeline.sprint)
    story.goes_on()
    story.starts("DEV-001")

    difference = compare(story.entries, DEVELOPMENT).difference

    assert difference
    assert [command.task for command in difference.decided if isinstance(command, Start)] == ["DESIGN-001"]


class CountingTeam(DevelopmentTeam):
    """Counts how often something is decided."""

    decisions = 0

    def before_work(self, state: State) -> tuple[events.Event, ...]:
        self.decisions += 1
        return super().before_work(state)


def test_a_long_journal_is_decided_in_proportion_to_its_length() -> None:
    story = driven()
    story.starts(*story.goes_on())
    for number in range(200):
        story.happens(messages.compose("architect", summary=f"step {number}", task=TaskId("DESIGN-001")))
    team = CountingTeam()

    replay = compare(story.entries, team)

    assert replay.difference is None
    assert team.decisions <= 2 * len(story.entries)


def steps(function: Callable[[], object]) -> int:
    """How many instructions of Python a call takes: the work, whatever the speed of the machine."""
    count = 0

    def trace(frame: FrameType, event: str, _: object) -> Callable[..., object]:
        nonlocal count
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count


def wide(size: int) -> list[Task]:
    """All of them can start at once, except for every third one, which waits for the one before."""
    names = [f"DEV-{number:03}" for number in range(size)]
    return [task(name, *names[place - 1 : place]) if place % 3 == 2 else task(name) for place, name in enumerate(names)]


def deep(size: int) -> list[Task]:
    """Each waits for the one before."""
    names = [f"DEV-{number:03}" for number in range(size)]
    return [task(name, *names[place - 1 : place]) if place else task(name) for place, name in enumerate(names)]


def carried_out(rows: list[Task], engine: Engine) -> list[events.Entry]:
    story = Story(*rows, engine=engine, concurrency=4)
    story.happens(events.EngineStarted(1, "base0000"))
    return works(story).entries


@both_engines
@pytest.mark.parametrize("table", [wide, deep])
def test_a_large_table_is_decided_again_in_proportion_to_its_length(
    engine: Engine, table: Callable[[int], list[Task]]
) -> None:
    small, large = (carried_out(table(size), engine) for size in (30, 120))

    few, many = (steps(partial(compare, entries, DEVELOPMENT)) for entries in (small, large))

    assert compare(large, DEVELOPMENT).difference is None
    assert many / few < 1.2 * len(large) / len(small)


def test_what_was_decided_before_other_processes_wrote_counts() -> None:
    story = works(driven())
    (place,) = (place for place, entry in enumerate(story.entries) if isinstance(entry.event, events.Finished))
    others = [events.Warned(f"late {number}", announced=False) for number in range(5)]
    entries = [*story.entries[:place], *(events.Entry(0, story.now, one) for one in others), *story.entries[place:]]

    replay = compare([msgspec.structs.replace(entry, seq=seq) for seq, entry in enumerate(entries, 1)], DEVELOPMENT)

    assert replay.difference is None


def test_a_long_journal_tells_how_far_it_was_compared() -> None:
    told: list[tuple[int, int]] = []
    story = driven(pipeline=Pipeline.sprint)
    story.happens(*(events.Warned(f"{number}", announced=False) for number in range(2 * OFTEN)))
    entries = story.entries

    compare(entries, DEVELOPMENT, lambda done, total: told.append((done, total)))

    places = [place for place, _ in told]
    assert {total for _, total in told} == {len(entries)}
    assert places == sorted(set(places))
    assert len(places) == len(entries) // OFTEN
