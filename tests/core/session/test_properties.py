"""What holds for every session, whatever the table, the agents, the user and the machine do.

The simulator plays the world of the development team. Each property then looks at the whole history.
"""

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import settings as chosen
from hypothesis import strategies as st
from tests.core.simulator import History, World
from tests.teams.development.sessions import a_beginning, work

from iterdev.core.collaboration.messages import Announced
from iterdev.core.limits.agent_failures import Reaction, reaction
from iterdev.core.limits.providers import ProviderPaused
from iterdev.core.results import Usage
from iterdev.core.rules.decide import decide
from iterdev.core.rules.outcomes import other_agents
from iterdev.core.rules.replay_check import compare
from iterdev.core.rules.schedule import Record, Start
from iterdev.core.session import events as session_events
from iterdev.core.session.fold import evolve, replay
from iterdev.core.session.task_table import queue_of
from iterdev.core.types import FINAL, Engine, Mode, Status, TaskId
from iterdev.store.journal import EventCodec
from iterdev.teams.development import events as team_events
from iterdev.teams.development.roles import Pipeline, Role, Signal, fields
from iterdev.teams.development.state import development
from iterdev.teams.development.team import DEVELOPMENT

REPLACED = {Reaction.replace_agent, Reaction.replace_for_task, Reaction.retry_later}


def _histories(*, edits: int, rollbacks: int) -> st.SearchStrategy[History]:
    def live(size: int, chance: Random) -> History:
        beginning = a_beginning(chance, size)
        return World(chance, DEVELOPMENT, beginning, work, edits=edits, rollbacks=rollbacks).live()

    return st.builds(live, st.integers(1, 30), st.randoms(use_true_random=True))


histories = _histories(edits=2, rollbacks=2)
onward = _histories(edits=2, rollbacks=0)
"""Histories in which nobody goes back."""
untouched = _histories(edits=0, rollbacks=0)
"""Histories in which nobody edits the table either."""
winding = _histories(edits=0, rollbacks=3)
"""Histories in which somebody goes back, and nobody edits the table."""


def holds_for(strategy: st.SearchStrategy[History], examples: int = 100) -> Callable[..., Callable[[], None]]:
    """The same examples on every machine; a single long history is no reason to fail."""

    def decorate(test: Callable[[History], None]) -> Callable[[], None]:
        relaxed = chosen(max_examples=examples, derandomize=True, deadline=None, database=None)
        return relaxed(given(strategy)(test))

    return decorate


@pytest.mark.requirement("R63", "R64")
@holds_for(histories, examples=1000)
def test_no_session_ever_gets_stuck_or_goes_on_for_ever(history: History) -> None:
    assert history.ending == "over", history


@pytest.mark.requirement("R64")
@holds_for(histories)
def test_a_session_is_over_only_when_every_task_is_final_or_its_plan_was_rejected(history: History) -> None:
    final = all(progress.status.is_final for progress in history.state.tasks.progress.values())

    assert final or not history.plan_was_run, history


@pytest.mark.requirement("R2")
@holds_for(histories)
def test_never_more_attempts_are_open_than_the_concurrency_allows(history: History) -> None:
    for step in history.steps:
        assert len(step.state.attempts.running) + len(step.starts) <= step.state.policy.concurrency, history


@holds_for(histories)
def test_a_task_is_started_only_while_it_is_pending_and_no_dependency_is_unmet(
    history: History,
) -> None:
    for step in history.steps:
        progress = step.state.tasks.progress
        assert len(set(step.starts)) == len(step.starts), history
        for task in step.starts:
            assert progress[task].status is Status.pending, (task, history)
            assert task not in step.state.attempts.running, (task, history)
            assert all(progress[dep].is_met for dep in step.state.tasks.plan[task].deps), (task, history)


@holds_for(winding, examples=200)
def test_no_attempt_is_made_while_another_one_at_the_same_task_is_open_or_after_it_was_done(history: History) -> None:
    open_or_done: set[TaskId] = set()
    for entry in history.entries:
        match entry.event:
            case session_events.AttemptStarted(task):
                assert task not in open_or_done, (task, history)
                open_or_done.add(task)
            case session_events.AttemptEnded(
                task=task, outcome=session_events.Limited() | session_events.Interrupted()
            ):
                open_or_done.discard(task)
            case session_events.AttemptEnded(task=task, outcome=session_events.Failed(kind=kind)) if (
                kind and reaction(kind) in REPLACED
            ):
                open_or_done.discard(task)
            case session_events.TasksReset(tasks):
                open_or_done.difference_update(tasks)
            case session_events.RollbackStarted(rows=rows, removed=removed):
                open_or_done.difference_update(removed, (row.id for row in rows))


@holds_for(histories)
def test_every_attempt_at_a_task_has_a_number_of_its_own(history: History) -> None:
    numbers = [(event.task, event.number) for event in history.seen(session_events.AttemptStarted)]

    assert len(set(numbers)) == len(numbers), history


@pytest.mark.requirement("R59")
@holds_for(histories)
def test_in_the_wave_engine_a_wave_waits_for_all_of_the_waves_before_it(history: History) -> None:
    for step in history.steps:
        if step.state.session.engine is Engine.wave:
            for task in step.starts:
                wave = step.state.tasks.plan[task].wave
                assert wave == step.state.tasks.wave, (task, history)
                before = [row.id for row in step.state.tasks.plan.values() if row.wave < wave]
                assert all(step.state.tasks.progress[row].status.is_final for row in before), (task, history)


@holds_for(histories)
def test_in_the_wave_engine_a_wave_is_merged_before_the_next_one_is_started(history: History) -> None:
    marks = [
        entry.event
        for entry in history.entries
        if isinstance(
            entry.event,
            session_events.WaveStarted
            | session_events.WaveMerged
            | session_events.TasksReset
            | session_events.TableEdited
            | session_events.RollbackStarted,
        )
    ]
    for before, after in pairwise(marks):
        if isinstance(after, session_events.WaveMerged):
            assert before == session_events.WaveStarted(after.wave), history
        if isinstance(after, session_events.WaveStarted):
            assert not isinstance(before, session_events.WaveStarted), history


@pytest.mark.requirement("R59")
@holds_for(histories)
def test_in_the_wave_engine_interactive_tasks_come_after_the_batch_of_their_wave_and_alone(history: History) -> None:
    for step in history.steps:
        rows = [step.state.tasks.plan[task] for task in step.starts]
        if step.state.session.engine is Engine.wave and any(row.mode is Mode.interactive for row in rows):
            batch = [
                row.id
                for row in step.state.tasks.plan.values()
                if row.wave == step.state.tasks.wave and row.mode is Mode.csv_wave
            ]
            assert len(rows) == 1, history
            assert not step.state.attempts.running, history
            assert all(step.state.tasks.progress[task].status.is_final for task in batch), history


@pytest.mark.requirement("R49", "R50")
@holds_for(untouched)
def test_a_task_is_skipped_exactly_when_a_dependency_was_lost_and_says_which(history: History) -> None:
    state = history.state
    repeated = {task for event in history.seen(session_events.TasksReset) for task in event.tasks}
    for row, progress in state.tasks.rows():
        lost = {dep for dep in row.deps if state.tasks.progress[dep].is_lost}
        if progress.status is Status.completed and lost <= repeated:
            continue  # What it waited for was there when it began, and was lost when it was tried again.
        if history.plan_was_run and row.id not in history.settled_by_hand:
            assert (progress.status is Status.skipped) == bool(lost), (row.id, history)
        if progress.status is Status.skipped and row.id not in history.settled_by_hand:
            named = set(progress.error.removeprefix("Dependency failed or skipped: ").split(", "))
            assert named <= lost, (row.id, history)


@pytest.mark.requirement("R1")
@holds_for(histories)
def test_in_auto_mode_no_question_is_ever_asked(history: History) -> None:
    assert not (history.state.policy.auto and history.seen(session_events.GateOpened)), history


@pytest.mark.requirement("R17")
@holds_for(histories)
def test_without_auto_mode_no_task_is_started_before_the_plan_is_approved(history: History) -> None:
    for step in history.steps:
        if not step.state.policy.auto and step.commands:
            assert not step.starts or step.state.gates.answer("plan") == "approve", history


@pytest.mark.requirement("R73")
@holds_for(onward)
def test_no_sprint_has_more_fix_rounds_than_allowed_nor_more_re_reviews_than_rounds(history: History) -> None:
    rounds = Counter(event.sprint for event in history.seen(team_events.RoundStarted))
    again = Counter(
        fields(row).sprint
        for before, after in pairwise(
            entry.event for entry in history.entries if not isinstance(entry.event, Announced)
        )
        if isinstance(before, team_events.RoundStarted) and isinstance(after, session_events.TasksAdded)
        for row in after.tasks
        if row.role is Role.reviewer
    )

    assert all(count <= development(history.state).thresholds.rounds for count in rounds.values()), history
    assert again == rounds, history


@pytest.mark.requirement("R73")
@holds_for(onward)
def test_a_fix_round_answers_verdicts_of_its_own_sprint_only(history: History) -> None:
    for event in history.seen(team_events.RoundStarted, team_events.ConvergenceForced):
        assert {fields(history.state.tasks.plan[task]).sprint for task in event.raised_by} == {event.sprint}, history


@pytest.mark.requirement("R68", "R69", "R75")
@holds_for(untouched)
def test_every_bad_review_leads_to_a_round_or_a_recorded_convergence_and_no_good_one_does(history: History) -> None:
    state = history.state
    raised = {
        task
        for event in history.seen(team_events.RoundStarted, team_events.ConvergenceForced)
        for task in event.raised_by
    }
    for task, verdict in development(state).verdicts.items():
        in_patch = fields(state.tasks.plan[task]).pipeline is Pipeline.patch
        bad = verdict.signal is Signal.revision_needed and not in_patch
        if state.tasks.progress[task].status is Status.completed:
            assert (task in raised) == bad, (task, history)


@pytest.mark.requirement("R90")
@holds_for(untouched)
def test_all_failing_tests_lead_to_a_round_another_look_or_a_recorded_convergence(history: History) -> None:
    state = history.state
    raised = {
        task
        for event in history.seen(team_events.RoundStarted, team_events.ConvergenceForced)
        for task in event.raised_by
    }
    answered = raised | {event.task for event in history.seen(team_events.Reverified)}
    for task, run in development(state).test_runs.items():
        fixable = fields(state.tasks.plan[task]).pipeline is not Pipeline.patch
        if fixable and run.failed and state.tasks.progress[task].status is Status.completed:
            assert task in answered, (task, history)


@holds_for(histories)
def test_no_agent_is_started_once_a_budget_is_used_up(history: History) -> None:
    for step in history.steps:
        rules, state = step.state.policy, step.state
        for task in step.starts:
            assert rules.budget_tokens is None or state.spending.total.tokens < rules.budget_tokens, history
            assert rules.day_budget_tokens is None or state.spending.today.tokens < rules.day_budget_tokens, history
            spent = state.tasks.progress[task].usage.tokens
            assert rules.task_budget_tokens is None or spent < rules.task_budget_tokens, (task, history)


@holds_for(histories, examples=600)
def test_no_attempt_is_ever_started_at_a_provider_that_is_paused(history: History) -> None:
    paused: dict[str, float] = {}
    agents: dict[TaskId, str] = {}
    names = history.state.agents
    for entry in history.entries:
        match entry.event:
            case ProviderPaused(provider, until, guesses=0):
                paused[provider] = max(until, paused.get(provider, 0))
            case session_events.AttemptEnded(task=task, outcome=session_events.Limited(reset_at=reset_at)):
                provider = names.provider_of(agents[task])
                paused[provider] = max(reset_at or entry.at + 1, paused.get(provider, 0))
            case session_events.AttemptStarted(task, _, agent):
                agents[task] = agent
                assert paused.get(names.provider_of(agent), 0) <= entry.at, (task, history)


@holds_for(histories)
def test_an_attempt_that_ended_by_a_limit_counts_for_nothing_but_its_cost(history: History) -> None:
    state = replay(history.entries[:1], DEVELOPMENT)
    for entry in history.entries[1:]:
        assert state
        before, state = state, evolve(state, [entry], DEVELOPMENT)
        match entry.event:
            case session_events.AttemptEnded(task=task, outcome=session_events.Limited()):
                was, now = before.tasks.progress[task], state.tasks.progress[task]
                assert now.status is Status.pending, (task, history)
                assert (now.error, now.findings, now.replaced_agents) == (
                    was.error,
                    was.findings,
                    was.replaced_agents,
                ), history
                assert (development(state).rounds, state.warnings) == (development(before).rounds, before.warnings), (
                    history
                )
                assert state.providers.unusable == before.providers.unusable, history


@holds_for(histories)
def test_an_agent_is_started_only_for_a_role_that_it_has_or_takes_over(history: History) -> None:
    for step in history.steps:
        for command in step.commands:
            if isinstance(command, Start):
                role = step.state.tasks.plan[command.task].role
                assert command.agent in step.state.agents.chain(role), (command, history)


@holds_for(histories)
def test_a_task_is_failed_by_a_trouble_only_when_no_other_agent_was_left(history: History) -> None:
    state = replay(history.entries[:1], DEVELOPMENT)
    for entry in history.entries[1:]:
        assert state
        before, state = state, evolve(state, [entry], DEVELOPMENT)
        match entry.event:
            case session_events.AttemptEnded(task=task, outcome=session_events.Failed(kind=kind)) if (
                kind and reaction(kind) in REPLACED
            ):
                left = other_agents(before, task, before.tasks.progress[task].agent)
                assert state.tasks.progress[task].status is (Status.pending if left else Status.failed), (task, history)


@holds_for(histories)
def test_what_was_spent_is_the_same_however_it_is_added_up(history: History) -> None:
    state = history.state
    usages = [
        entry.event.outcome.usage for entry in history.entries if isinstance(entry.event, session_events.AttemptEnded)
    ]
    tasks = {**state.tasks.removed, **state.tasks.progress}
    for parts in (usages, [progress.usage for progress in tasks.values()], state.spending.by_agent.values()):
        assert sum(parts, Usage()).tokens == state.spending.total.tokens, history


@pytest.mark.requirement("R74", "R75")
@holds_for(onward)
def test_every_forced_convergence_is_warned_about_and_its_problems_are_noted(history: History) -> None:
    noted = {note.text for note in history.state.wisdom.notes if note.file == "issues"}
    for event in history.seen(team_events.ConvergenceForced):
        assert event.problems, history
        assert noted.issuperset(event.problems), history
        assert any(
            f"sprint-{event.sprint} " in text and event.problems[0] in text for text in history.state.warnings
        ), history


@pytest.mark.requirement("R37")
@holds_for(histories)
def test_no_task_id_is_ever_used_twice_unless_its_task_was_removed(history: History) -> None:
    used: set[TaskId] = set()
    for event in history.seen(session_events.TasksAdded, session_events.RollbackStarted):
        if isinstance(event, session_events.RollbackStarted):
            used.difference_update(event.removed)
        else:
            added = [row.id for row in event.tasks]
            assert used.isdisjoint(added), history
            used.update(added)


@holds_for(winding, examples=200)
def test_the_branch_holds_the_work_of_every_developer_who_is_done_and_of_nobody_else(history: History) -> None:
    state = history.state
    landed = Counter(task for task in state.branch.tip.split()[1:] if DEVELOPMENT.role_of(task) is Role.developer)
    done = [
        row.id
        for row, progress in state.tasks.rows()
        if row.role is Role.developer and progress.status is Status.completed and progress.commit
    ]
    refused = {task for task, conflict in state.conflicts.by_task.items() if not conflict.found.merged}

    assert landed == Counter(task for task in done if task not in refused), history


@holds_for(histories)
def test_no_sprint_begins_before_every_task_of_the_one_before_it_is_over(history: History) -> None:
    for step in history.steps:
        for command in step.commands:
            if isinstance(command, Record) and any(
                isinstance(event, team_events.SprintStarted) for event in command.events
            ):
                assert all(progress.status.is_final for progress in step.state.tasks.progress.values()), history


@pytest.mark.requirement("R45")
@holds_for(histories)
def test_waves_always_equal_one_plus_the_highest_among_the_dependencies(history: History) -> None:
    tasks = history.state.tasks.plan
    for row in tasks.values():
        assert row.wave == 1 + max((tasks[dep].wave for dep in row.deps), default=0), (row.id, history)


@holds_for(histories, examples=300)
def test_folding_the_whole_journal_again_gives_the_live_state(history: History) -> None:
    assert replay(history.entries, DEVELOPMENT) == history.state


@chosen(max_examples=300, derandomize=True, deadline=None, database=None)
@given(histories, st.lists(st.integers(1, 100), max_size=5))
def test_folding_in_any_chunks_gives_the_same_state(history: History, cuts: list[int]) -> None:
    places = [1, *sorted(cut for cut in cuts if cut < len(history.entries)), len(history.entries)]
    state = replay(history.entries[:1], DEVELOPMENT)
    for begin, end in pairwise(places):
        assert state
        state = evolve(state, history.entries[begin:end], DEVELOPMENT)

    assert state == history.state


@holds_for(histories, examples=100)
def test_every_decision_can_be_made_again_from_the_journal_and_no_state_was_changed_in_place(history: History) -> None:
    for step in history.steps[:: max(1, len(history.steps) // 10)]:
        again = replay([entry for entry in history.entries if entry.seq <= step.state.seq], DEVELOPMENT)
        assert again == step.state, history
        assert decide(again, DEVELOPMENT, step.now) == step.commands, history


@holds_for(histories)
def test_what_the_state_keeps_beside_the_table_agrees_with_the_table(history: History) -> None:
    for state in (*(step.state for step in history.steps), history.state):
        statuses = {task: progress.status for task, progress in state.tasks.progress.items()}
        pending = [row for row in state.tasks.plan.values() if statuses[row.id] is Status.pending]
        unmet = {row.id: sum(not state.tasks.progress[dep].is_met for dep in row.deps) for row in pending}
        waiting = Counter((dep, row.id) for row in state.tasks.plan.values() for dep in row.deps)
        open_ = Counter(row.wave for row in state.tasks.plan.values() if statuses[row.id] not in FINAL)

        assert set(state.tasks.ready) == {task for task, count in unmet.items() if not count}, history
        assert list(state.tasks.in_order(state.tasks.queues)) == sorted(
            state.tasks.ready, key=state.tasks.order.__getitem__
        )
        for queue, names in state.tasks.queues.items():
            assert names, history
            assert {queue_of(state.tasks.plan[task]) for task in names} == {queue}, history
        assert state.tasks.lowest_wave == min(open_, default=0), history
        assert set(state.tasks.blocked_by_failure) == {
            row.id for row in pending if any(state.tasks.progress[dep].is_lost for dep in row.deps)
        }
        assert state.tasks.completed == state.tasks.count(Status.completed), history
        assert {task: state.tasks.blockers[task] for task in unmet} == unmet, history
        assert Counter((dep, row) for dep, rows in state.tasks.dependants.items() for row in rows) == waiting, history
        assert state.tasks.open_in_wave == open_, history
        assert set(state.attempts.running) == {
            task for task, status in statuses.items() if status is Status.in_progress
        }
        assert {*state.attempts.landing, *state.conflicts.unresolved} == {
            task for task, status in statuses.items() if status is Status.landing
        }


@holds_for(histories, examples=200)
def test_every_event_survives_the_journal(history: History) -> None:
    codec = EventCodec()
    for entry in history.entries:
        assert codec.decode(codec.encode(entry.event)) == entry.event


@holds_for(histories, examples=100)
def test_every_history_is_decided_again_as_it_was_recorded(history: History) -> None:
    assert compare(history.entries, DEVELOPMENT).difference is None, history
