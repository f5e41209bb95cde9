"""A session folder that is written again and again says the same as one that is made at the end."""

import os
import shutil
import signal
import sys
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.simulator import World
from tests.store.conftest import COMMIT, Story, review, task
from tests.teams.development.sessions import a_beginning, work
from tests.teams.issues.sessions import beginning, facts, random_work

from iterdev.core.collaboration.messages import MessageSent
from iterdev.core.collaboration.wisdom import WisdomNoted, note
from iterdev.core.request import Request
from iterdev.core.session.events import Entry, RowEdit, TableEdited
from iterdev.core.session.fold import evolve, replay
from iterdev.core.session.state import State
from iterdev.core.settings import Settings
from iterdev.core.types import Engine, Status, TaskId
from iterdev.core.verification import Verification
from iterdev.store.atomic_files import SUFFIX
from iterdev.store.journal import NAME, Journal
from iterdev.store.session_folder import tasks_csv
from iterdev.store.session_folder.json_records import records
from iterdev.store.session_folder.projector import Edited, Projector
from iterdev.store.session_folder.task_texts import TaskTexts
from iterdev.teams.contract import Team
from iterdev.teams.development.team import DEVELOPMENT
from iterdev.teams.issues.team import ISSUES


def check(chance: Random, history: Sequence[Entry], team: Team) -> None:
    """Takes the texts through a history, with some of its states left out."""
    texts, state = TaskTexts(team), replay(history[:1], team)
    often = chance.random()
    for entry in history[1:]:
        state = evolve(state, [entry], team)
        if chance.random() < often or entry is history[-1]:
            texts.update(state)
            assert texts.table(state) == tasks_csv.table(state, team)
            assert records(state, team, texts.entries(state)) == records(state, team)


@settings(max_examples=40, derandomize=True, deadline=None, database=None)
@given(st.integers(1, 12), st.randoms(use_true_random=True))
def test_what_is_said_of_each_task_follows_a_session_through_edits_and_rollbacks(size: int, chance: Random) -> None:
    world = World(chance, DEVELOPMENT, a_beginning(chance, size), work, edits=2, rollbacks=2, talks=5)

    check(chance, world.live().entries, DEVELOPMENT)


@settings(max_examples=20, derandomize=True, deadline=None, database=None)
@given(st.integers(1, 5), st.randoms(use_true_random=True))
def test_so_it_does_in_sessions_of_the_issue_team(size: int, chance: Random) -> None:
    issues = [facts(number) for number in range(1, size + 1)]
    request = Request(requirement="Resolve them", auto=True, engine=chance.choice(list(Engine)))
    world = World(chance, ISSUES, beginning(request, issues, "gemini", Settings()), random_work, rollbacks=2)

    check(chance, world.live().entries, ISSUES)


def test_a_score_leaves_the_entry_of_work_that_a_person_takes_from_its_review(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002"), task("REVIEW-001", "DEV-001"))
    story.complete("REVIEW-001", review=review(8))
    texts = TaskTexts(DEVELOPMENT)
    texts.update(story.state)
    other = msgspec.structs.replace(story.state.tasks.plan[TaskId("REVIEW-001")], deps=(TaskId("DEV-002"),))

    story.tell(TableEdited((RowEdit(task=other, status=Status.completed, findings="", error=""),)))
    texts.update(story.state)

    assert records(story.state, DEVELOPMENT, texts.entries(story.state)) == records(story.state, DEVELOPMENT)


def test_an_engine_that_is_killed_at_any_write_leaves_a_folder_that_the_next_one_completes(
    story: Story, tmp_path: Path
) -> None:
    story.add(task("DEV-001"), task("VERIFY-001", "DEV-001"), task("REVIEW-001", "DEV-001"))
    story.start("DEV-001")
    before = story.state
    learned = note("learnings", "tests are slow", session="", task="DEV-001", commit="", at=0)
    story.end("DEV-001", commit=COMMIT, changed=("auth.py",))
    story.land("DEV-001")
    story.tell(WisdomNoted((learned,)), MessageSent(sender="user", to="all", kind="note", summary="go on"))
    story.complete("VERIFY-001", verification=Verification(command="pytest", pass_rate=1, total=2))
    story.complete("REVIEW-001", review=review(8))
    after, whole = story.state, contents(story.project())
    shutil.rmtree(story.folder)
    story.journal.close()

    for number in count():
        top = tmp_path / f"killed-{number}"
        shutil.copytree(story.top / ".workflow", top / ".workflow")
        was_killed = killed_at_write(number, top, before, after)
        projector, journal = opened(top, after)
        projector.prepare()

        assert projector.edits(after) == Edited()
        projector.write(after)

        assert contents(top / after.session.folder) == whole
        journal.close()
        shutil.rmtree(top)
        if not was_killed:
            break
    assert number > 10


def killed_at_write(number: int, top: Path, before: State, after: State) -> bool:
    """Brings a folder from one state to another in a process of its own; False if it had fewer writes."""
    if child := os.fork():
        return os.WIFSIGNALED(os.waitpid(child, 0)[1])
    writes = count()

    def audit(event: str, args: tuple[object, ...]) -> None:
        writing = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        if (writing or event == "os.rename") and next(writes) == number:
            os.kill(os.getpid(), signal.SIGKILL)

    projector, _ = opened(top, before)
    projector.prepare()
    projector.write(before)
    sys.addaudithook(audit)
    projector.write(after)
    os._exit(0)


def opened(top: Path, state: State) -> tuple[Projector, Journal]:
    journal = Journal(top / ".workflow" / NAME)
    return Projector(top / state.session.folder, journal, DEVELOPMENT), journal


def contents(folder: Path) -> dict[str, bytes]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if SUFFIX not in path.name}
