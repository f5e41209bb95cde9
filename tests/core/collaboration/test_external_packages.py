"""External packages: who needs them, what blocks a task, and what goes into the backlog."""

import json

import msgspec
import pytest
from tests.core.conftest import Story, done, task

from iterdev.core.collaboration import external_packages
from iterdev.core.collaboration.external_packages import PackageCheck, PackageStatus
from iterdev.core.collaboration.messages import COORDINATOR, EVERYONE
from iterdev.core.results import Dependency
from iterdev.core.rules.replay_check import compare
from iterdev.core.session import events
from iterdev.core.types import Engine, TaskId
from iterdev.store.session_folder.json_records import records
from iterdev.store.session_folder.task_texts import TaskTexts
from iterdev.teams.development.team import DEVELOPMENT

DEV, VERIFY = TaskId("DEV-001"), TaskId("VERIFY-001")
LIB = Dependency(name="lib", version_range=">=2", source="pip")
GATE = "dependencies-VERIFY-001"


def look(status: PackageStatus = PackageStatus.missing, actual: str | None = None, **more: str) -> PackageCheck:
    facts = {"name": "lib", "version_range": ">=2", "source": "pip"} | more
    return PackageCheck(actual_version=actual, status=status, **facts)


def declared(engine: Engine = Engine.wave, **policy: object) -> Story:
    """A developer has declared a package, and the tester is about to start."""
    story = Story(task("DEV-001"), task("VERIFY-001", "DEV-001"), engine=engine, **policy)
    story.happens(events.EngineStarted(1, "base0000"))
    story.goes_on()
    story.happens(events.GateAnswered("plan", "approve"))
    story.starts(*story.goes_on())
    story.ends("DEV-001", done("done", dependencies=(LIB,)))
    assert story.goes_on() == ["VERIFY-001"]
    return story


def tries(story: Story, *looks: PackageCheck) -> None:
    """The tester's attempt looks at its packages, and does not start when one is wrong."""
    story.starts("VERIFY-001")
    unmet = external_packages.problems(looks, story.state.packages.overridden)
    outcome = events.Unmet() if unmet else done("verified")
    story.ends("VERIFY-001", outcome, 0 if unmet else 1, checked=looks)


def ledger(story: Story, name: str) -> dict[str, object]:
    entries = json.loads(records(story.state, DEVELOPMENT)["task-ledger.json"])["tasks"]
    return next(entry for entry in entries if entry["id"] == name)


def test_a_task_needs_what_the_tasks_before_it_declared_directly_or_not() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"), task("VERIFY-001", "DEV-002"), task("DEV-003"))
    story.does("DEV-001", done("f", dependencies=(LIB,)))

    need = {
        name: external_packages.needed(story.state.packages, story.state.tasks.ancestors(name))
        for name in story.state.tasks.plan
    }

    assert need == {DEV: (), TaskId("DEV-002"): (LIB,), VERIFY: (LIB,), TaskId("DEV-003"): ()}


def test_of_two_declarations_of_a_package_the_later_one_counts() -> None:
    story = Story(task("DEV-001"), task("DEV-002", "DEV-001"), task("VERIFY-001", "DEV-002"))
    newer = msgspec.structs.replace(LIB, version_range=">=3")
    story.does("DEV-001", done("f", dependencies=(LIB,)))
    story.does("DEV-002", done("f", dependencies=(newer,)))

    assert external_packages.needed(story.state.packages, story.state.tasks.ancestors(VERIFY)) == (newer,)


@pytest.mark.requirement("R133")
@pytest.mark.parametrize(("status", "actual"), [(PackageStatus.missing, None), (PackageStatus.mismatch, "1.9")])
def test_a_problem_is_told_to_all_and_stands_in_the_ledger(status: PackageStatus, actual: str | None) -> None:
    story = declared(auto=False)
    tries(story, look(status, actual))

    message = story.state.messages.sent[-1]
    entry = ledger(story, "VERIFY-001")
    assert (message.type, message.to, message.sender) == (
        "dependency_mismatch",
        EVERYONE,
        COORDINATOR,
    )
    assert "lib" in message.summary
    assert message.data == {"task": "VERIFY-001", "packages": ["lib"]}
    assert entry["status"] == "blocked"
    assert entry["external_dependencies"] == [
        {"name": "lib", "version_range": ">=2", "actual_version": actual, "source": "pip", "status": status.value}
    ]
    assert json.loads(records(story.state, DEVELOPMENT)["task-ledger.json"])["metrics"]["blocked"] == 1


@pytest.mark.requirement("R133")
def test_the_ledger_shows_what_was_declared_before_and_after_it_was_looked_at() -> None:
    story = declared()
    before = ledger(story, "DEV-001")["external_dependencies"]
    tries(story, look(PackageStatus.ok, "2.5"))
    after = ledger(story, "DEV-001")["external_dependencies"]

    assert [(one["status"], one["actual_version"]) for one in before] == [("pending", None)]
    assert [(one["status"], one["actual_version"]) for one in after] == [("ok", "2.5")]
    assert ledger(story, "VERIFY-001")["external_dependencies"] == after


def test_a_ledger_that_follows_the_session_shows_the_newest_check_of_every_task_too() -> None:
    story, texts = declared(), TaskTexts(DEVELOPMENT)
    texts.update(story.state)
    tries(story, look(PackageStatus.ok, "2.5"))

    texts.update(story.state)

    assert records(story.state, DEVELOPMENT, texts.entries(story.state)) == records(story.state, DEVELOPMENT)


@pytest.mark.requirement("R134")
@pytest.mark.parametrize("engine", list(Engine))
def test_a_blocked_task_waits_for_an_answer_and_goes_on_when_the_user_overrides(engine: Engine) -> None:
    story = declared(engine, auto=False)
    tries(story, look())
    waiting = story.goes_on()
    (question,) = story.state.gates.open.values()
    story.happens(events.GateAnswered(GATE, "override"))
    started = story.goes_on()
    tries(story, look())
    story.goes_on()

    assert waiting == []
    assert (question.id, question.choices) == (GATE, ("override", "recheck"))
    assert "lib >=2 is missing" in question.question
    assert started == ["VERIFY-001"]
    assert story.state.lifecycle.is_over
    assert story.state.warnings == ("VERIFY-001 goes on although lib >=2 is missing",)
    assert compare(story.entries, DEVELOPMENT).difference is None


@pytest.mark.requirement("R134")
def test_a_new_look_that_finds_the_problem_solved_lets_the_task_start() -> None:
    story = declared(auto=False)
    tries(story, look())
    story.goes_on()
    story.happens(events.GateAnswered(GATE, "recheck"))
    first = story.goes_on()
    tries(story, look(PackageStatus.mismatch, "1.9"))
    still = story.goes_on()
    asked_again = list(story.state.gates.open)
    story.happens(events.GateAnswered(GATE, "recheck"))
    story.goes_on()
    tries(story, look(PackageStatus.ok, "2.1"))
    story.goes_on()

    assert (first, still, asked_again) == (["VERIFY-001"], [], [GATE])
    assert story.status("VERIFY-001") == "completed"
    assert story.state.warnings == ()
    assert compare(story.entries, DEVELOPMENT).difference is None


@pytest.mark.requirement("R1", "R134")
def test_with_nobody_to_ask_the_work_goes_on_with_a_warning() -> None:
    story = declared(auto=True)
    tries(story, look(PackageStatus.mismatch, "1.9", reason="expected >=2, got 1.9"))

    assert story.goes_on() == ["VERIFY-001"]
    assert story.state.warnings == ("VERIFY-001 goes on although lib >=2 is not what is there (expected >=2, got 1.9)",)


def test_what_was_overridden_once_is_not_asked_about_again_but_another_problem_is() -> None:
    story = declared(auto=False)
    tries(story, look())
    story.goes_on()
    story.happens(events.GateAnswered(GATE, "override"))
    story.goes_on()
    tries(story, look(), look(name="other"))
    story.goes_on()

    (question,) = story.state.gates.open.values()
    assert "other" in question.question
    assert "lib" not in question.question


def test_a_look_that_kept_a_task_from_starting_is_no_attempt() -> None:
    story = declared(auto=True)
    tries(story, look())

    assert story.state.tasks.progress[VERIFY].requests == 0


def test_the_time_that_a_person_takes_is_not_taken_from_the_wave() -> None:
    story = declared(auto=False, wave_limit=100)
    tries(story, look())
    story.goes_on()
    story.now += 1000
    story.happens(events.GateAnswered(GATE, "recheck"))

    assert story.goes_on() == ["VERIFY-001"]


@pytest.mark.requirement("R142")
def test_a_release_beyond_the_range_is_told_once_and_enters_the_backlog() -> None:
    story = declared()
    tries(story, look(PackageStatus.ok, "2.5", newest="3.0"))
    story.goes_on()

    updates = [message for message in story.state.messages.sent if message.type == "dependency_update_needed"]
    (entry,) = json.loads(records(story.state, DEVELOPMENT)[".msg/meta.json"])["backlog"]
    assert [message.to for message in updates] == [EVERYONE]
    assert "lib 3.0" in updates[0].summary
    assert entry == {
        "name": "lib",
        "source": "pip",
        "version_range": ">=2",
        "actual_version": "2.5",
        "newest": "3.0",
        "found_by": "VERIFY-001",
    }
    assert story.state.lifecycle.is_over
    assert compare(story.entries, DEVELOPMENT).difference is None
