"""Two developers who change the same file side by side."""

import msgspec
import pytest
from tests.core.conftest import Story, done, task

from iterdev.core.rules import conflict_tasks
from iterdev.core.session import events
from iterdev.core.session.attempts import Success
from iterdev.core.session.conflicts import MergeInProgress
from iterdev.core.types import ConflictStrategy, Engine, TaskId
from iterdev.core.views.report import report
from iterdev.core.views.session import session_view
from iterdev.core.views.why import why
from iterdev.teams.development.team import DEVELOPMENT

ONE, TWO = TaskId("DEV-001"), TaskId("DEV-002")
FIX = TaskId("DEV-002-fix-conflict")


def worked(*files: str, commit: str = "c") -> Success:
    return done("done", commit=commit, changed=files)


def side_by_side(first: str, second: str, *, strategy: ConflictStrategy = ConflictStrategy.auto_merge) -> Story:
    """DEV-001 lands its file while DEV-002 is at work on its own; a verification waits for both."""
    story = Story(task("DEV-001"), task("DEV-002"), task("VERIFY-001", "DEV-001", "DEV-002"), conflicts=strategy)
    story.goes_on()
    story.starts("DEV-001", "DEV-002")
    story.ends("DEV-001", worked(first, commit="c1"))
    story.lands(ONE, "t1")
    story.ends("DEV-002", worked(second, commit="c2"))
    return story


def kinds(story: Story) -> list[str]:
    return [message.type for message in story.state.messages.sent]


def test_work_on_different_files_is_no_conflict() -> None:
    story = side_by_side("a.py", "b.py")
    story.lands(TWO, "t2")

    assert not story.state.conflicts.by_task
    assert story.status("DEV-002") == "completed"


@pytest.mark.requirement("R129")
def test_a_file_that_both_changed_is_a_conflict_that_everybody_is_told_about() -> None:
    story = side_by_side("a.py", "a.py")
    story.lands(TWO, "t2")

    conflict = story.state.conflicts.by_task[TWO].found
    assert (conflict.files, conflict.others) == (("a.py",), (ONE,))
    assert not conflict_tasks.is_resolved(story.state, TWO)
    assert story.state.messages.sent[-1].type == "conflict_detected"
    assert story.state.messages.sent[-1].to == "all"


@pytest.mark.requirement("R129")
def test_work_on_top_of_other_work_is_never_in_conflict_with_it() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"))
    story.goes_on()
    story.does("DEV-001", worked("a.py"))
    story.goes_on()
    story.does("DEV-002", worked("a.py"))
    story.goes_on()

    assert not story.state.conflicts.by_task


@pytest.mark.requirement("R129")
def test_slow_work_collides_with_everything_that_landed_meanwhile() -> None:
    story = Story(*(task(f"DEV-00{number}") for number in range(1, 5)))
    story.does("DEV-001", worked("a.py"))
    story.lands(ONE, "t1")
    story.starts("DEV-004")
    for name in ("DEV-002", "DEV-003"):
        story.does(name, worked("a.py"))
        story.lands(TaskId(name), f"tip of {name}")
    story.ends("DEV-004", worked("a.py"))
    story.lands(TaskId("DEV-004"), "t4")

    assert {name: conflict.found.others for name, conflict in story.state.conflicts.by_task.items()} == {
        "DEV-004": ("DEV-002", "DEV-003")
    }


def test_what_landed_is_forgotten_when_nobody_can_collide_with_it_any_more() -> None:
    story = Story(*(task(f"DEV-00{number}") for number in range(1, 4)))
    story.does("DEV-001", events.Failed(error="no luck"))
    for name in ("DEV-002", "DEV-003"):
        story.does(name, worked("a.py"))
        story.lands(TaskId(name), f"tip of {name}")

    assert (story.state.conflicts.touched, story.state.conflicts.started) == ({}, {})


@pytest.mark.requirement("R130")
@pytest.mark.parametrize("strategy", [ConflictStrategy.auto_merge, ConflictStrategy.abort])
def test_what_git_merged_is_taken_as_it_is_and_its_conflict_task_needs_no_agent(strategy: ConflictStrategy) -> None:
    story = side_by_side("a.py", "a.py", strategy=strategy)
    story.lands(TWO, "t2")

    started = story.goes_on()

    conflict = story.state.conflicts.by_task[TWO]
    assert (conflict.strategy, conflict.resolved_by) == ("auto_merge", FIX)
    assert (story.row(FIX).role, story.status(FIX)) == ("developer", "completed")
    assert story.state.tasks.progress[FIX].findings == "git merged both changes of a.py"
    assert conflict_tasks.is_resolved(story.state, TWO)
    assert started == ["VERIFY-001"]
    assert story.row("VERIFY-001").wave == 2


@pytest.mark.requirement("R130")
@pytest.mark.parametrize("strategy", ConflictStrategy)
@pytest.mark.parametrize("merged", [True, False])
def test_the_developer_is_told_of_the_task_that_resolves_a_conflict(
    strategy: ConflictStrategy, *, merged: bool
) -> None:
    story = side_by_side("a.py", "a.py", strategy=strategy)
    story.lands(TWO, "t2") if merged else story.is_refused(TWO, "a.py")
    story.goes_on()

    (told,) = [message for message in story.state.messages.sent if message.type == "conflict_resolved"]

    assert (told.sender, told.to) == ("coordinator", "developer")
    assert told.data["resolved_by"] == told.data["ref"] == FIX
    assert FIX in told.summary


@pytest.mark.requirement("R130")
@pytest.mark.parametrize("merged", [True, False])
def test_a_developer_brings_both_changes_together_before_anybody_looks_at_them(*, merged: bool) -> None:
    story = side_by_side("a.py", "a.py", strategy=ConflictStrategy.manual if merged else ConflictStrategy.auto_merge)
    story.lands(TWO, "t2") if merged else story.is_refused(TWO, "a.py")

    started = story.goes_on()

    conflict = story.state.conflicts.by_task[TWO]
    assert (conflict.strategy, conflict.resolved_by) == ("manual", FIX)
    assert started == [FIX]
    assert story.row(FIX).deps == (TWO,)
    assert story.row("VERIFY-001").deps == (ONE, FIX)
    assert story.row("VERIFY-001").wave == 3
    assert story.status("DEV-002") == "completed"


def test_the_developer_is_told_where_the_work_is_that_could_not_land() -> None:
    story = side_by_side("a.py", "a.py")
    story.is_refused(TWO, "a.py")
    story.goes_on()

    text = story.prompt(FIX)

    assert conflict_tasks.merge_of(story.state, FIX) == MergeInProgress(task=TWO, commit="c2")
    assert "The work of DEV-002, commit c2, is being merged here." in text
    assert "DEV-001: title of DEV-001 (commit c1)" in text


def test_what_git_could_merge_is_not_merged_again() -> None:
    story = side_by_side("a.py", "a.py", strategy=ConflictStrategy.manual)
    story.lands(TWO, "t2")
    story.goes_on()

    assert conflict_tasks.merge_of(story.state, FIX) is None
    assert "commit c2, is merged here already" in story.prompt(FIX)


def test_a_row_that_is_only_called_like_a_conflict_task_is_a_developers_row() -> None:
    story = Story(msgspec.structs.replace(task("DEV-001"), id=FIX))

    assert conflict_tasks.merge_of(story.state, FIX) is None
    assert "Conflicting work" not in story.prompt(FIX)


@pytest.mark.requirement("R130")
def test_with_abort_work_that_git_cannot_merge_is_done_again_on_what_landed() -> None:
    story = side_by_side("a.py", "a.py", strategy=ConflictStrategy.abort)
    story.is_refused(TWO, "a.py")

    started = story.goes_on()

    conflict = story.state.conflicts.by_task[TWO]
    assert (started, conflict.strategy, conflict.resolved_by) == ([FIX], "abort", FIX)
    assert story.row("VERIFY-001").deps == (ONE, FIX)
    assert conflict_tasks.merge_of(story.state, FIX) is None
    assert "commit c2, is not here, and is not merged: do it again on top of what is here" in story.prompt(FIX)
    assert not conflict_tasks.is_resolved(story.state, TWO)
    assert shown(story, TWO)[0] == "[WAIT]"


def test_resolving_conflicts_comes_to_an_end() -> None:
    story = side_by_side("a.py", "a.py")
    refused = 0
    story.is_refused(TWO, "a.py")
    while (started := story.goes_on()) and started[0].startswith("DEV"):
        refused += 1
        story.does(started[0], worked("a.py"))
        story.is_refused(TaskId(started[0]), "a.py")

    last = TaskId("DEV-002" + "-fix-conflict" * 2)
    assert refused == 2
    assert story.status("VERIFY-001") == "skipped"
    assert story.status(last) == "failed"
    assert not any(conflict_tasks.is_resolved(story.state, task) for task in (TWO, FIX, last))
    assert kinds(story).count("conflict_resolved") == 2
    assert kinds(story)[-2:] == ["error", "sprint_complete"]


def four_side_by_side(engine: Engine, *files: str) -> Story:
    """Four developers begin together; the first one lands, and the others collide with it in their files."""
    names = [f"DEV-00{number}" for number in range(1, 5)]
    rows = [*map(task, names), task("VERIFY-001", *names)]
    story = Story(*rows, engine=engine, concurrency=4)
    story.goes_on()
    story.starts(*names)
    for name, file in zip(names, ("a.py", *files), strict=True):
        story.ends(name, worked("a.py", file, commit=f"commit of {name}"))
        lands = name == names[0]
        story.lands(name, "t1") if lands else story.is_refused(name, file)
    return story


def fix(number: int, again: int = 1) -> str:
    return f"DEV-00{number}{'-fix-conflict' * again}"


@pytest.mark.requirement("R130")
@pytest.mark.parametrize("engine", Engine)
def test_conflicts_in_the_same_file_are_resolved_one_after_another(engine: Engine) -> None:
    story = four_side_by_side(engine, "a.py", "a.py", "a.py")
    order = []
    while (started := story.goes_on()) and started != ["VERIFY-001"]:
        order.append(started)
        story.does(started[0], worked("a.py"))

    assert order == [[fix(2)], [fix(3)], [fix(4)]]
    assert [story.row(fix(number)).wave for number in (2, 3, 4)] == [2, 3, 4]
    assert story.row("VERIFY-001").deps == (ONE, fix(2), fix(3), fix(4))
    assert story.row("VERIFY-001").wave == 5


def test_conflicts_in_different_files_are_resolved_side_by_side() -> None:
    story = Story(*(task(f"DEV-00{number}") for number in range(1, 4)))
    names = ("DEV-001", "DEV-002", "DEV-003")
    story.starts(*names)
    for name, files in zip(names, (("a.py", "b.py"), ("a.py",), ("b.py",)), strict=True):
        story.ends(name, worked(*files))
        story.lands(ONE, "t1") if name == ONE else story.is_refused(name, *files)

    assert story.goes_on() == [fix(2), fix(3)]


@pytest.mark.parametrize("engine", Engine)
def test_a_conflict_task_that_fails_does_not_keep_the_next_one_from_its_work(engine: Engine) -> None:
    story = four_side_by_side(engine, "a.py", "a.py", "a.py")
    assert story.goes_on() == [fix(2)]
    story.fails(fix(2))

    assert story.goes_on() == [fix(3)]
    story.does(fix(3), worked("a.py"))
    assert story.goes_on() == [fix(4)]
    story.does(fix(4), worked("a.py"))
    assert story.goes_on() == []
    assert story.status("VERIFY-001") == "skipped"


@pytest.mark.parametrize("engine", Engine)
def test_a_conflict_task_that_collides_itself_is_resolved_before_the_next_one_begins(engine: Engine) -> None:
    story = four_side_by_side(engine, "a.py", "a.py", "a.py")
    assert story.goes_on() == [fix(2)]
    story.does(fix(2), worked("a.py"))
    story.is_refused(fix(2), "a.py")

    assert story.goes_on() == [fix(2, again=2)]
    assert story.row(fix(3)).deps == ("DEV-003", fix(2, again=2))
    assert story.row("VERIFY-001").deps == (ONE, fix(2, again=2), fix(3), fix(4))


def refused() -> Story:
    """DEV-002 could not land, and its conflict task is to start."""
    story = side_by_side("a.py", "a.py")
    story.is_refused(TWO, "a.py")
    assert story.goes_on() == [FIX]
    return story


def shown(story: Story, name: str) -> tuple[str, str]:
    """The mark and the note of a task in the status picture."""
    (line,) = [line for line in session_view(story.state, DEVELOPMENT).tasks if line.id == name]
    return line.mark, line.note


@pytest.mark.requirement("R130")
def test_work_that_could_not_land_is_not_shown_as_done_before_its_conflict_task_is() -> None:
    story = refused()
    assert shown(story, TWO) == ("[WAIT]", f"conflict in a.py; being resolved by {FIX}")
    assert not conflict_tasks.is_resolved(story.state, TWO)
    assert f"Commit: c2 (not landed, see {FIX})" in report(story.state, DEVELOPMENT)

    story.starts(FIX)
    assert shown(story, TWO)[0] == "[RUN]"

    story.ends(FIX, worked("a.py", commit="c3"))
    story.goes_on()
    assert shown(story, TWO) == ("[DONE]", f"conflict in a.py; resolved by {FIX}")
    assert conflict_tasks.is_resolved(story.state, TWO)
    assert f"Commit: c2 (landed with {FIX})" in report(story.state, DEVELOPMENT)
    assert conflict_tasks.not_landed(story.state) == []


@pytest.mark.requirement("R130")
def test_the_work_of_a_task_is_lost_when_its_conflict_task_fails_and_says_where_it_is_kept() -> None:
    story = refused()
    story.fails(FIX)

    kept = f"refs/iterdev/{story.state.session.id}/DEV-002/1"
    note = f"conflict in a.py; {FIX} failed: this work is not on the branch, it is kept as {kept}"
    assert shown(story, TWO) == ("[FAIL]", note)
    assert why(story.state, DEVELOPMENT, TWO, engine_alive=True) == [f"DEV-002 is completed: {note}"]
    assert not conflict_tasks.is_resolved(story.state, TWO)
    assert conflict_tasks.not_landed(story.state) == [TWO]


def test_work_is_lost_with_the_last_of_its_conflict_tasks() -> None:
    story = refused()
    story.does(FIX, worked("a.py", commit="c3"))
    story.is_refused(FIX, "a.py")
    (last,) = story.goes_on()
    assert shown(story, TWO) == ("[WAIT]", f"conflict in a.py; being resolved by {last}")

    story.fails(last)

    assert conflict_tasks.not_landed(story.state) == [TWO, FIX]
    assert not conflict_tasks.is_resolved(story.state, TWO)


def test_work_that_is_done_again_is_no_longer_in_its_old_conflict() -> None:
    story = refused()
    story.fails(FIX)
    story.happens(events.TasksReset((TWO,)))
    assert shown(story, TWO) == ("[WAIT]", "ready")

    story.does("DEV-002", worked("a.py", commit="c4"))
    story.goes_on()

    assert story.state.conflicts.by_task == {}
    assert shown(story, TWO) == ("[DONE]", "code/dev-log.md")


def test_work_that_a_worker_reports_is_not_under_way_any_longer() -> None:
    story = Story(task("DEV-001"), task("DEV-002"))
    story.starts("DEV-001", "DEV-002")

    story.happens(events.TaskReported(task=TaskId("DEV-001"), findings="done elsewhere"))

    assert list(story.state.conflicts.started) == ["DEV-002"]
