"""What to do next, for both engines."""

import subprocess
import sys
from collections.abc import Callable

import msgspec
import pytest
from tests.core.conftest import Outcome, Story, a_design, done, measured, review, task

from iterdev.core.collaboration.external_packages import PackageCheck, PackageStatus
from iterdev.core.collaboration.messages import compose
from iterdev.core.limits.clock_changes import ClockChanged
from iterdev.core.results import Usage
from iterdev.core.rules.decide import decide
from iterdev.core.rules.schedule import Land, Record, Start, Wait
from iterdev.core.session import events
from iterdev.core.session.fold import replay
from iterdev.core.types import Engine, Mode, TaskId
from iterdev.core.views.gates import gate_view
from iterdev.teams.development import events as team_events
from iterdev.teams.development.results import Milestone
from iterdev.teams.development.roles import Pipeline, Role, fields
from iterdev.teams.development.rules import shortcomings
from iterdev.teams.development.team import DEVELOPMENT

ENGINES = pytest.mark.parametrize("engine", Engine)


def asked(story: Story) -> events.Gate:
    """The question that is open now."""
    (gate,) = story.state.gates.open.values()
    return gate


def answer(story: Story, choice: str) -> None:
    story.happens(events.GateAnswered(asked(story).id, choice))


def recorded_with(story: Story, event: events.Event) -> tuple[events.Event, ...]:
    """What is recorded in one step with this event, once that is decided."""
    while True:
        (command,) = story.decides()
        assert isinstance(command, Record)
        if event in command.events:
            return command.events
        story.happens(*command.events)


def wide(count: int, **policy: object) -> Story:
    """Tasks that could all run at once."""
    return Story(*(task(f"DEV-{number:03d}") for number in range(1, count + 1)), **policy)


@pytest.mark.requirement("R16")
def test_the_user_is_shown_requirement_pipeline_complexity_and_roles_and_may_choose() -> None:
    story = Story(requirement="Restructure auth", auto=False)
    story.goes_on()

    gate = asked(story)

    for word in (
        '"Restructure auth"',
        "sprint pipeline is recommended",
        "complexity Low",
        "architect, developer, tester",
    ):
        assert word in gate.question
    assert gate.choices == ("approve", "patch", "sprint", "multi-sprint")


@pytest.mark.requirement("R16")
@pytest.mark.parametrize(
    ("choice", "pipeline"),
    [
        ("approve", Pipeline.sprint),
        ("patch", Pipeline.patch),
        ("sprint", Pipeline.sprint),
        ("multi-sprint", Pipeline.multi_sprint),
    ],
)
def test_the_chosen_pipeline_is_the_one_that_runs(choice: str, pipeline: Pipeline) -> None:
    story = Story(requirement="Restructure auth", auto=False)
    story.goes_on()
    answer(story, choice)
    story.goes_on()

    assert story.team.pipeline is pipeline
    assert {fields(row).pipeline for row in story.state.tasks.plan.values()} == {pipeline}


@pytest.mark.requirement("R16")
def test_a_pipeline_that_was_named_is_not_asked_about() -> None:
    story = Story(auto=False, pipeline=Pipeline.patch)
    story.goes_on()

    assert asked(story).id == "plan"


@pytest.mark.requirement("R17")
@ENGINES
def test_the_breakdown_is_shown_with_waves_and_modes_before_anything_starts(engine: Engine) -> None:
    story = Story(task("REVIEW-001"), task("GC-CHECK-001", "REVIEW-001"), engine=engine, auto=False)

    assert story.goes_on() == []
    shown = gate_view(asked(story), DEVELOPMENT, story.state).details
    assert [line.split()[:5] for line in shown[1:3]] == [
        ["1", "REVIEW-001", "reviewer", "mine", "csv-wave"],
        ["2", "GC-CHECK-001", "gc-controller", "-", "interactive"],
    ]
    answer(story, "approve")
    assert story.goes_on() == ["REVIEW-001"]


@pytest.mark.requirement("R17")
@ENGINES
def test_a_rejected_breakdown_ends_the_session_with_nothing_started(engine: Engine) -> None:
    story = Story(task("DEV-001"), engine=engine, auto=False)
    story.goes_on()
    answer(story, "reject")

    assert story.goes_on() == []
    assert (story.state.lifecycle.is_over, story.state.lifecycle.why) == (True, "the plan was rejected")


@pytest.mark.requirement("R1")
@ENGINES
def test_in_auto_mode_the_recommended_pipeline_runs_without_a_question(engine: Engine) -> None:
    story = Story(requirement="Restructure auth", engine=engine, auto=True)

    assert story.goes_on() == ["DESIGN-001"]
    assert story.team.pipeline is Pipeline.sprint
    assert not story.seen(events.GateOpened)


def planned(*, auto: bool) -> Story:
    return Story(requirement="Restructure auth", auto=auto)


def everything_failed(*, auto: bool) -> Story:
    story = wide(2, auto=auto)
    approve(story)
    story.fails("DEV-001")
    story.fails("DEV-002")
    return story


def out_of_budget(*, auto: bool) -> Story:
    story = wide(2, concurrency=1, auto=auto, budget_usd=1.0)
    approve(story)
    story.does("DEV-001", done(usage=Usage(cost_usd=1.0)))
    return story


def without_package(*, auto: bool) -> Story:
    story = Story(task("VERIFY-001"), auto=auto)
    approve(story)
    missing = PackageCheck(
        name="lib", source="pip", version_range="", actual_version=None, status=PackageStatus.missing
    )
    story.starts("VERIFY-001")
    story.ends("VERIFY-001", events.Unmet(), 0, checked=(missing,))
    return story


def lacking_something(*, auto: bool) -> Story:
    story = wide(1, auto=auto)
    approve(story)
    story.happens(compose("developer", kind="capability_gap", summary="somebody who knows SQL"))
    return story


def between_sprints(*, auto: bool) -> Story:
    story = Story(task("DESIGN-001", pipeline=Pipeline.multi_sprint), pipeline=Pipeline.multi_sprint, auto=auto)
    approve(story)
    milestones = tuple(Milestone(title=title) for title in ("Store", "Serve"))
    story.does("DESIGN-001", done("", design=msgspec.structs.replace(a_design(), milestones=milestones)))
    return story


def not_verified(*, auto: bool) -> Story:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"), pipeline=Pipeline.patch, auto=auto)
    approve(story)
    story.does("DEV-001", done("", commit="c1", changed=("a.py",)))
    story.goes_on()
    story.verifies("VERIFY-001", None)
    return story


def approve(story: Story) -> None:
    story.goes_on()
    story.happens(events.GateAnswered("plan", "approve"))
    story.goes_on()


@pytest.mark.requirement("R1")
@pytest.mark.parametrize(
    ("situation", "kind"),
    [
        *((planned, "pipeline"), (everything_failed, "wave"), (out_of_budget, "budget")),
        *((without_package, "dependencies"), (lacking_something, "capability")),
        *((between_sprints, "sprint"), (not_verified, "unverified")),
    ],
)
def test_what_is_asked_without_auto_mode_is_never_asked_in_it(situation: Callable[..., Story], kind: str) -> None:
    manual, automatic = situation(auto=False), situation(auto=True)
    for story in (manual, automatic):
        story.goes_on()

    assert asked(manual).kind == kind
    assert automatic.seen(events.GateOpened) == []


def test_while_a_question_is_open_nothing_is_decided() -> None:
    story = wide(2, auto=True)
    story.happens(events.GateOpened(events.Gate(kind="q", question="?", choices=("a",))))

    assert story.decides() == ()


@pytest.mark.requirement("R2")
@ENGINES
@pytest.mark.parametrize(("policy", "limit"), [({}, 3), ({"concurrency": 1}, 1), ({"concurrency": 5}, 5)])
def test_as_many_agents_run_at_once_as_allowed_and_3_without_a_word(
    engine: Engine, policy: dict[str, int], limit: int
) -> None:
    story = wide(9, engine=engine, **policy)
    started = story.goes_on()
    story.starts(*started)

    assert len(started) == limit
    assert story.goes_on() == []
    story.ends(started[0], done(""))
    assert story.goes_on() == [f"DEV-{limit + 1:03d}"]


@ENGINES
def test_tasks_are_started_in_the_order_of_the_table(engine: Engine) -> None:
    story = Story(task("DEV-009"), task("DEV-001"), task("DEV-005"), engine=engine, concurrency=2)

    assert story.goes_on() == ["DEV-009", "DEV-001"]


@ENGINES
def test_a_commit_lands_before_anything_else_is_started(engine: Engine) -> None:
    story = wide(3, engine=engine, concurrency=1)
    story.goes_on()
    story.does("DEV-001", done("", commit="c1"))

    assert story.decides() == (Land(TaskId("DEV-001")),)


@pytest.mark.requirement("R42")
def test_the_beat_engine_starts_whatever_is_ready() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("VERIFY-001", "DEV-001"), engine=Engine.beat)
    story.goes_on()
    story.starts("DEV-001", "DEV-002")
    story.ends("DEV-001", done(""))

    assert story.goes_on() == ["VERIFY-001"]


@pytest.mark.requirement("R59", "R63")
def test_the_wave_engine_finishes_a_wave_before_it_starts_the_next() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("VERIFY-001", "DEV-001"))
    story.goes_on()
    story.starts("DEV-001", "DEV-002")
    story.ends("DEV-001", done(""))
    meanwhile = story.goes_on()
    story.ends("DEV-002", done(""))

    assert meanwhile == []
    assert story.goes_on() == ["VERIFY-001"]
    assert story.seen(events.WaveStarted, events.WaveMerged) == [
        events.WaveStarted(1),
        events.WaveMerged(1),
        events.WaveStarted(2),
    ]


@pytest.mark.requirement("R59")
def test_interactive_tasks_run_after_the_batch_of_their_wave_one_at_a_time() -> None:
    story = Story(task("DESIGN-001", mode=Mode.interactive), task("DEV-001"), task("DESIGN-002", mode=Mode.interactive))
    order = []
    while started := story.goes_on():
        order.append(started)
        for name in started:
            story.does(name)

    assert order == [["DEV-001"], ["DESIGN-001"], ["DESIGN-002"]]


def test_conversations_before_a_wave_run_before_its_batch_one_at_a_time() -> None:
    story = Story(
        *(task("DEV-001"), task("DEV-002"), task("DESIGN-002", mode=Mode.interactive)),
        *(task("DESIGN-001", mode=Mode.pre_wave), task("DESIGN-003", mode=Mode.pre_wave)),
    )
    order = []
    while started := story.goes_on():
        order.append(started)
        story.starts(*started)
        assert story.goes_on() == []
        for name in started:
            story.ends(name, done())

    assert order == [["DESIGN-001"], ["DESIGN-003"], ["DEV-001", "DEV-002"], ["DESIGN-002"]]


@pytest.mark.requirement("R48", "R49")
def test_what_cannot_run_is_skipped_in_the_moment_in_which_its_wave_starts() -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("VERIFY-001", "DEV-001"), task("VERIFY-002", "DEV-002"))
    story.goes_on()
    story.fails("DEV-001")
    story.does("DEV-002")

    decided = recorded_with(story, events.WaveStarted(2))

    assert decided == (
        events.WaveStarted(2),
        events.TaskSkipped(TaskId("VERIFY-001"), "Dependency failed or skipped: DEV-001"),
    )


@pytest.mark.requirement("R59")
def test_while_an_interactive_task_runs_nothing_else_of_its_wave_is_started() -> None:
    story = Story(*(task(f"DESIGN-00{number}", mode=Mode.interactive) for number in (1, 2)))
    story.goes_on()
    story.starts("DESIGN-001")

    assert story.goes_on() == []


@pytest.mark.requirement("R49", "R50", "R64")
@ENGINES
@pytest.mark.parametrize("mode", Mode)
def test_what_depends_on_a_failed_task_is_skipped_and_names_it_whatever_its_mode(engine: Engine, mode: Mode) -> None:
    rows = task("DEV-001"), task("VERIFY-001", "DEV-001", mode=mode), task("DEV-002", "VERIFY-001", mode=mode)
    story = Story(*rows, engine=engine)
    story.goes_on()
    story.fails("DEV-001")
    story.goes_on()

    assert story.state.lifecycle.is_over
    assert [story.status(name) for name in story.state.tasks.plan] == ["failed", "skipped", "skipped"]
    assert story.state.tasks.progress[TaskId("VERIFY-001")].error == "Dependency failed or skipped: DEV-001"
    assert story.state.tasks.progress[TaskId("DEV-002")].error == "Dependency failed or skipped: VERIFY-001"


@pytest.mark.requirement("R50")
def test_every_failed_dependency_is_named() -> None:
    story = Story(
        task("DEV-001"), task("DEV-002"), task("DEV-003"), task("REVIEW-001", "DEV-003", "DEV-002", "DEV-001")
    )
    story.goes_on()
    story.fails("DEV-001")
    story.does("DEV-002")
    story.fails("DEV-003")
    story.goes_on()

    assert story.state.tasks.progress[TaskId("REVIEW-001")].error == "Dependency failed or skipped: DEV-003, DEV-001"


@pytest.mark.requirement("R64")
@ENGINES
def test_a_failure_does_not_stop_what_does_not_depend_on_it(engine: Engine) -> None:
    story = Story(task("DEV-001"), task("DEV-002"), task("VERIFY-001", "DEV-002"), engine=engine)
    story.goes_on()
    story.fails("DEV-001")
    story.does("DEV-002")

    assert story.goes_on() == ["VERIFY-001"]


@pytest.mark.requirement("R58")
def test_when_every_agent_of_a_wave_failed_the_user_may_retry_or_give_up() -> None:
    story = wide(2, auto=False)
    story.goes_on()
    answer(story, "approve")
    story.goes_on()
    story.fails("DEV-001")
    story.fails("DEV-002")

    assert story.goes_on() == []
    assert set(asked(story).choices) == {"retry", "abort"}
    assert "DEV-001, DEV-002" in asked(story).question


@pytest.mark.requirement("R58")
def test_a_retry_runs_the_failed_tasks_again_and_may_be_asked_for_every_time() -> None:
    story = wide(1, auto=False)
    story.goes_on()
    answer(story, "approve")
    for _ in range(3):
        assert story.goes_on() == ["DEV-001"]
        story.fails("DEV-001")
        story.goes_on()
        assert asked(story).id == "wave-1"
        answer(story, "retry")

    assert story.goes_on() == ["DEV-001"]


@pytest.mark.requirement("R58")
def test_giving_up_ends_the_run() -> None:
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"), auto=False)
    story.goes_on()
    answer(story, "approve")
    story.goes_on()
    story.fails("DEV-001")
    story.goes_on()
    answer(story, "abort")

    assert story.goes_on() == []
    assert story.state.lifecycle.is_over
    assert story.status("VERIFY-001") == "skipped"


@pytest.mark.requirement("R58")
def test_a_test_run_that_fails_before_anybody_is_asked_raises_the_question_too() -> None:
    story = Story(task("VERIFY-001"), auto=False)
    story.goes_on()
    answer(story, "approve")
    story.goes_on()
    story.starts("VERIFY-001")
    why = "the test run ran longer than 900 s and was ended"
    story.ends("VERIFY-001", events.Failed(error=why), requests=0)
    story.goes_on()

    assert asked(story).id == "wave-1"
    assert gate_view(asked(story), DEVELOPMENT, story.state).details == (f"VERIFY-001: {why}",)


@pytest.mark.requirement("R58")
def test_a_wave_in_which_one_agent_succeeded_raises_no_question() -> None:
    story = wide(2, auto=False)
    story.goes_on()
    answer(story, "approve")
    story.goes_on()
    story.fails("DEV-001")
    story.does("DEV-002")
    story.goes_on()

    assert story.state.lifecycle.is_over
    assert [event.gate.id for event in story.seen(events.GateOpened)] == ["plan"]


@pytest.mark.requirement("R63")
def test_waves_that_a_fix_round_added_are_run() -> None:
    story = Story(task("REVIEW-001"))
    story.goes_on()
    story.reviews("REVIEW-001", review(5))
    order = []
    while started := story.goes_on():
        order += started
        for name in started:
            story.reviews(name, review(9)) if name.startswith("REVIEW") else story.does(name)

    assert order == ["DEV-fix-1", "REVIEW-002"]
    assert story.state.lifecycle.is_over


@ENGINES
def test_a_start_has_the_number_of_its_next_request_and_its_time_limit(engine: Engine) -> None:
    story = Story(task("DEV-001"), engine=engine, attempt_limit=60)
    story.goes_on()
    story.starts("DEV-001")
    story.ends("DEV-001", events.Interrupted(), requests=3)

    assert story.decides() == (Start(task=TaskId("DEV-001"), number=4, limit=60, agent="mine"),)


def test_an_attempt_in_a_wave_has_no_more_time_than_the_wave_has_left() -> None:
    story = wide(2, concurrency=1, wave_limit=100, attempt_limit=60)
    story.goes_on()
    story.now += 70
    story.does("DEV-001")

    assert story.decides() == (Start(task=TaskId("DEV-002"), number=1, limit=30, agent="mine"),)


def test_what_a_wave_has_no_time_left_for_has_failed() -> None:
    story = wide(2, concurrency=1, wave_limit=100)
    story.goes_on()
    story.does("DEV-001")
    story.now += 100
    story.goes_on()

    assert story.status("DEV-002") == "failed"
    assert "wave 1 had used up its 1 min 40 s" in story.state.tasks.progress[TaskId("DEV-002")].error


@pytest.mark.requirement("R119")
def test_the_time_in_which_no_engine_ran_is_not_taken_from_the_wave() -> None:
    story = wide(2, concurrency=1, wave_limit=100)
    story.goes_on()
    story.does("DEV-001", events.Interrupted())
    story.now += 5000
    story.happens(events.EngineStarted(2, "base0000"))

    assert story.goes_on() == ["DEV-001"]


def starts_elsewhere(story: Story, *names: str) -> None:
    story.happens(*(events.AttemptStarted(TaskId(name), 1, "mine", "base0000", where="hosts") for name in names))


def test_the_time_in_which_an_attempt_waits_for_a_host_is_not_taken_from_the_wave() -> None:
    story = wide(3, concurrency=2, wave_limit=100, attempt_limit=60)
    story.happens(events.WaveStarted(1))
    story.now += 10
    starts_elsewhere(story, "DEV-001", "DEV-002")
    story.now += 500
    story.happens(events.AttemptPlaced(TaskId("DEV-001"), 1, "builder-1"))
    story.now += 500
    story.ends("DEV-001", done())
    while_one_waits = story.decides()
    story.happens(events.AttemptPlaced(TaskId("DEV-002"), 1, "builder-2"))
    story.now += 60

    assert while_one_waits == (Start(task=TaskId("DEV-003"), number=1, limit=60, agent="mine"),)
    assert story.decides() == (Start(task=TaskId("DEV-003"), number=1, limit=30, agent="mine"),)


@pytest.mark.parametrize("seconds", [3600, -900])
def test_an_attempt_that_never_found_a_host_took_no_time_from_the_wave(seconds: float) -> None:
    story = wide(2, concurrency=1, wave_limit=100, attempt_limit=100)
    story.happens(events.WaveStarted(1))
    story.now += 10
    starts_elsewhere(story, "DEV-001")
    story.now += 500 + seconds
    story.happens(ClockChanged(seconds))
    story.ends("DEV-001", events.Failed(error="nobody offers it"))

    assert story.decides() == (Start(task=TaskId("DEV-002"), number=1, limit=90, agent="mine"),)


@pytest.mark.parametrize("seconds", [3600, -900])
def test_a_clock_that_is_set_neither_takes_time_from_a_wave_nor_gives_it_any(seconds: float) -> None:
    story = wide(2, concurrency=1, wave_limit=100, attempt_limit=60)
    story.goes_on()
    story.now += 70 + seconds
    story.happens(ClockChanged(seconds))
    story.does("DEV-001")

    assert story.decides() == (Start(task=TaskId("DEV-002"), number=1, limit=30, agent="mine"),)


@ENGINES
def test_a_limited_provider_is_waited_for_however_long_it_takes(engine: Engine) -> None:
    story = Story(task("DEV-001"), engine=engine, wave_limit=100)
    story.goes_on()
    story.does("DEV-001", events.Limited(error="429", reset_at=story.now + 5000))
    waits = story.decides()
    story.now += 5000

    assert waits == (Wait(story.now),)
    assert story.goes_on() == ["DEV-001"]


@ENGINES
def test_a_task_that_waits_for_its_provider_does_not_hold_up_those_of_other_providers(engine: Engine) -> None:
    agents = {Role.developer: "mine", Role.reviewer: "theirs"}
    story = Story(task("DEV-001"), task("REVIEW-001"), engine=engine, concurrency=1, agents=agents)
    story.goes_on()
    story.does("DEV-001", events.Limited(error="429", reset_at=story.now + 50))

    assert story.goes_on() == ["REVIEW-001"]


@ENGINES
@pytest.mark.parametrize(
    ("policy", "usage"),
    [({"budget_usd": 1.0}, Usage(cost_usd=1.0)), ({"budget_tokens": 10}, Usage(input_tokens=4, output_tokens=6))],
)
def test_no_agent_is_started_once_the_budget_is_used_up(engine: Engine, policy: dict[str, float], usage: Usage) -> None:
    story = wide(2, engine=engine, concurrency=1, **policy)
    story.goes_on()
    story.does("DEV-001", done("", usage=usage))

    assert story.goes_on() == []
    assert story.state.lifecycle.is_over
    assert "is used up" in story.state.tasks.progress[TaskId("DEV-002")].error


def test_agents_that_run_when_the_budget_is_used_up_may_finish() -> None:
    story = wide(3, concurrency=2, budget_usd=1.0)
    story.goes_on()
    story.starts("DEV-001", "DEV-002")
    story.ends("DEV-001", done("", usage=Usage(cost_usd=2)))

    assert story.goes_on() == []
    assert [story.status(name) for name in story.state.tasks.plan] == ["completed", "in_progress", "pending"]


@pytest.mark.parametrize(("choice", "started"), [("stop", []), ("go-on", ["DEV-002"])])
def test_the_user_decides_whether_to_spend_more_than_the_budget(choice: str, started: list[str]) -> None:
    story = wide(2, concurrency=1, auto=False, budget_usd=1.0)
    story.goes_on()
    answer(story, "approve")
    story.goes_on()
    story.does("DEV-001", done("", usage=Usage(cost_usd=2)))
    story.goes_on()
    answer(story, choice)

    assert story.goes_on() == started


@pytest.mark.requirement("R64")
@ENGINES
def test_when_every_task_is_final_the_session_is_finished(engine: Engine) -> None:
    story = wide(1, engine=engine)
    story.goes_on()
    story.does("DEV-001")
    story.goes_on()

    assert story.state.lifecycle.is_over
    assert story.decides() == ()


@ENGINES
def test_deciding_depends_on_nothing_but_the_journal_and_the_time(engine: Engine) -> None:
    story = Story(engine=engine, pipeline=Pipeline.sprint)
    story.goes_on()
    again = replay(story.entries, DEVELOPMENT)

    assert again
    assert decide(again, DEVELOPMENT, story.now) == story.decides()
    assert not any(isinstance(command, Record) for command in story.decides())


@pytest.mark.requirement("R96")
def test_whoever_decides_has_nothing_at_hand_with_which_to_write_or_run_anything() -> None:
    look = "import sys, iterdev.core.rules.decide; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", look], capture_output=True, text=True, check=True).stdout.split()

    assert "iterdev.core.rules.decide" in loaded
    hands = ("iterdev.host", "iterdev.agents", "iterdev.engine", "iterdev.store", "subprocess", "sqlite3", "anyio")
    assert [name for name in loaded if name.startswith(hands)] == []


@pytest.mark.requirement("R121")
@ENGINES
def test_tasks_that_a_killed_engine_had_not_made_are_made_with_their_blockers_and_only_the_first_starts(
    engine: Engine,
) -> None:
    story = Story(engine=engine, pipeline=Pipeline.sprint)
    story.happens(team_events.PipelineChosen(Pipeline.sprint), events.EngineStarted(2, story.state.branch.tip))

    started = story.goes_on()

    assert {row.id: row.deps for row in story.state.tasks.plan.values()} == {
        "DESIGN-001": (),
        "DEV-001": ("DESIGN-001",),
        "VERIFY-001": ("DEV-001",),
        "REVIEW-001": ("DEV-001",),
    }
    assert started == ["DESIGN-001"]


@ENGINES
def test_a_test_run_is_repeated_once_when_work_landed_after_it(engine: Engine) -> None:
    story = Story(engine=engine, pipeline=Pipeline.sprint)
    work = done("built", commit="c1", changed=("a.py",))
    outcomes: dict[str, Outcome] = {
        "DESIGN-001": done("one module", design=a_design()),
        "DEV-001": work,
        "VERIFY-001": done("green", verification=measured()),
        "REVIEW-001": done("poor", review=review(5)),
        "DEV-fix-1": work,
        "REVIEW-002": done("good", review=review(9)),
    }
    while (started := story.goes_on()) != ["VERIFY-001"]:
        for name in started:
            story.does(name, outcomes[name])

    story.fails("VERIFY-001", "the machine went away")
    rest = story.goes_on()

    assert "REVIEW-002" in story.state.tasks.plan
    assert rest == []
    assert story.state.lifecycle.is_over
    assert "untested" in " ".join(shortcomings(story.state))
