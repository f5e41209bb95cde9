import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.store.conftest import CRITICAL, Story, design, review, started, task, team_started

from iterdev.core.collaboration.feedback import Feedback, FeedbackGiven
from iterdev.core.collaboration.messages import MessageDeleted, compose
from iterdev.core.errors import UserError
from iterdev.core.policy import Policy
from iterdev.core.rules.decide import decide
from iterdev.core.rules.schedule import Record
from iterdev.core.session.events import TasksAdded
from iterdev.core.session.state import State
from iterdev.core.types import Engine, Phase, Status, TaskId
from iterdev.store import session_log
from iterdev.store.journal import Journal
from iterdev.store.session_folder import find, rebuild
from iterdev.store.session_folder.find import TABLE
from iterdev.store.session_folder.projector import Edited, Projector
from iterdev.teams.development import sprints
from iterdev.teams.development.events import SprintEnded, SprintRecord, SprintStarted, Thresholds
from iterdev.teams.development.results import Milestone
from iterdev.teams.development.roles import Pipeline, Role
from iterdev.teams.development.state import Verdict, development
from iterdev.teams.development.team import DEVELOPMENT
from iterdev.teams.table import TEAMS

HEAD = "a" * 40


def rebuilt(folder: Path, engine: Engine = Engine.wave) -> State:
    """The session that a new journal has when nothing but the folder is left."""
    created, events = rebuild.session_events(folder, engine, TEAMS, base=HEAD, branch="trunk")
    journal = Journal(folder / "new.db")
    state = session_log.create(journal, events, at=created)
    journal.close()
    return state


def table(state: State) -> list[tuple[object, ...]]:
    verdicts = development(state).verdicts
    return [
        (task, progress.status, progress.findings, verdicts.get(task.id, Verdict()).score, progress.error)
        for task, progress in state.tasks.rows()
    ]


def test_what_hosts_left_under_a_former_name_of_the_session_is_not_forgotten(tmp_path: Path) -> None:
    story = Story(tmp_path, started(suffix="aaaa1111"), team_started())
    story.project()
    story.journal.close()

    once = rebuilt(story.folder).session
    record = json.loads((story.folder / rebuild.SESSION).read_text())
    again = {"suffix": once.suffix, "former_suffixes": [*once.former_suffixes, "../x"]}
    (story.folder / rebuild.SESSION).write_text(json.dumps({**record, **again}))
    (story.folder / "new.db").unlink()
    twice = rebuilt(story.folder).session

    assert once.suffix != "aaaa1111"
    assert once.former_suffixes == ("aaaa1111",)
    assert twice.former_suffixes == ("aaaa1111", once.suffix)


@pytest.mark.requirement("R67")
def test_a_session_is_rebuilt_from_its_folder_when_the_journal_is_missing(story: Story) -> None:
    story.sprint()
    story.project()
    before = story.state

    state = rebuilt(story.folder)

    assert table(state) == table(before)
    assert state.session.id == before.session.id
    assert (state.session.requirement, state.session.folder) == (before.session.requirement, before.session.folder)
    assert (state.session.base, state.session.branch) == (before.session.base, before.session.branch)
    assert (state.lifecycle.phase, state.branch.tip) == (Phase.completed, before.branch.tip)
    assert development(state).pipeline is Pipeline.sprint
    assert state.created_at == before.created_at
    assert any("rebuilt" in warning for warning in state.warnings)


def test_a_session_in_the_middle_goes_on_where_it_was(story: Story) -> None:
    story.add_pipeline()
    story.complete("DESIGN-001")
    story.start("DEV-001")
    story.project()

    state = rebuilt(story.folder)

    assert (state.lifecycle.phase, list(state.tasks.ready), list(state.attempts.running)) == (
        Phase.active,
        ["DEV-001"],
        [],
    )
    assert [progress.status for progress in state.tasks.progress.values()] == [
        Status.completed,
        Status.pending,
        Status.pending,
        Status.pending,
    ]


def test_the_rules_and_the_agents_of_the_command_line_are_remembered(tmp_path: Path) -> None:
    policy, thresholds = Policy(auto=True, concurrency=7, wave_limit=10, attempt_limit=5), Thresholds(rounds=1)
    beginning = started(agents={Role.developer: "codex"}, by_hand=True, policy=policy)
    story = Story(tmp_path, beginning, team_started(thresholds))
    story.add(task("DEV-001"))
    story.project()
    story.journal.close()

    state = rebuilt(story.folder)

    assert (state.policy, state.session.agents) == (policy, {Role.developer: "codex"})
    assert state.session.by_hand
    assert development(state).thresholds == thresholds


@pytest.mark.requirement("R73")
def test_fix_rounds_that_were_used_stay_used(story: Story) -> None:
    story.add(
        task("REVIEW-001"),
        task("DEV-fix-1", "REVIEW-001", round=1),
        task("DEV-fix-2", "DEV-fix-1", round=2),
        task("DEV-002", "DEV-fix-2", sprint=2),
    )
    story.project()

    assert development(rebuilt(story.folder)).rounds == {1: 2}


@pytest.mark.parametrize(
    "spoiled",
    [
        None,
        b"",
        b"{",
        b"\xff\xfe\x00",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"pipeline": "nonsense", "policy": 5, "agents": 7, "created_at": "yesterday", "base": {}, "tip": []}',
        b'{"pipeline": [], "policy": {"concurrency": 0}, "agents": {"wizard": "x"}, "created_at": "0001-01-01"}',
        b'{"requirement": 7, "policy": {"concurrency": -1}, "user_branch": null, "status": {"a": 1}, "created_at": 5}',
        b'{"max_gc_rounds": -1}',
        b'{"max_gc_rounds": "many"}',
    ],
)
def test_a_missing_or_corrupt_session_file_loses_only_its_own_facts(story: Story, spoiled: bytes | None) -> None:
    story.add_pipeline()
    story.complete("DESIGN-001")
    path = story.project() / "session.json"
    path.unlink()
    if spoiled is not None:
        path.write_bytes(spoiled)

    state = rebuilt(story.folder)

    assert table(state) == table(story.state)
    assert state.session.requirement == story.state.session.requirement
    assert (state.session.base, state.session.branch) == (HEAD, "trunk")
    assert (state.policy, state.session.agents) == (Policy(), {})
    assert (development(state).pipeline, development(state).thresholds) == (Pipeline.sprint, Thresholds())


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ids-add-a-greeting-20260225", "add a greeting"),
        ("ids-add-a-greeting-20260225-2", "add a greeting"),
        ("IDS-登录-2026-02-25", "登录"),
        ("something", "something"),
    ],
)
def test_without_a_session_file_the_requirement_is_made_of_the_name(tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / TABLE).write_text("id,description\nDEV-001,Do it\n")

    assert rebuilt(tmp_path / name).session.requirement == words


@pytest.mark.requirement("R36")
def test_the_milestones_of_later_sprints_are_not_forgotten(story: Story) -> None:
    milestones = (Milestone(title="Check them", tasks=("task-1",)), Milestone(title="Use them", tasks=("task-2",)))
    planned = replace(design(), milestones=milestones)
    story.add_pipeline(Pipeline.multi_sprint)
    story.complete("DESIGN-001", design=planned)
    story.project()

    state = rebuilt(story.folder)

    assert development(state).designs == {"DESIGN-001": planned}
    assert list(sprints.goals(state)) == ["Check them", "Use them"]
    kept = json.loads((story.folder / "design" / "task-breakdown.json").read_text())
    assert [milestone["title"] for milestone in kept["milestones"]] == ["Check them", "Use them"]


@pytest.mark.parametrize("spoiled", [b"", b"{", b"[]", b'{"id": "DESIGN-001"}', b'{"design": 7}'])
def test_a_corrupt_design_is_left_as_it_is(story: Story, spoiled: bytes) -> None:
    story.add_pipeline()
    story.complete("DESIGN-001", design=design())
    (story.project() / "design" / "design-001.json").write_bytes(spoiled)

    state = rebuilt(story.folder)

    assert development(state).designs == {}
    assert state.tasks.status(TaskId("DESIGN-001")) is Status.completed


def test_how_earlier_sprints_went_is_not_forgotten(story: Story) -> None:
    record = SprintRecord(
        pipeline=Pipeline.multi_sprint,
        expected=5,
        velocity=4,
        mean_score=8.5,
        rounds=1,
        worked=("DEV-001: it",),
        learned=("tabs",),
    )
    story.add(task("DEV-001"), task("DEV-002", "DEV-001", sprint=2))
    story.tell(SprintEnded(1, record), SprintStarted(2, "more"))
    path = story.project() / ".msg" / "meta.json"
    meta = json.loads(path.read_text())
    path.write_text(json.dumps(meta | {"sprint_history": [7, {"sprint_id": "x"}, *meta["sprint_history"]]}))

    state = rebuilt(story.folder)

    part = development(state)
    assert (part.sprint, part.sprints) == (2, {1: record})


@pytest.mark.requirement("R115")
def test_the_bus_is_read_back_and_a_line_that_is_no_message_is_skipped(story: Story) -> None:
    story.add_pipeline()
    story.complete("DESIGN-001")
    story.tell(compose("architect", kind="state_update", data={"a": 1, "b": 1}))
    story.tell(compose("architect", kind="state_update", data={"b": 2}))
    story.tell(MessageDeleted(2))
    path = story.project() / ".msg" / "messages.jsonl"
    first, *others = path.read_bytes().splitlines(keepends=True)
    broken = (b"{half\n", b"\xff\n", b"[]\n", b'{"id": "MSG-' + b"9" * 5000 + b'"}\n', b'{"id": "MSG-002"}\n', b"\n")
    path.write_bytes(b"".join((first, *broken, *others)))

    state = rebuilt(story.folder)

    before, after = story.state.messages, state.messages
    assert after.sent[:-1] == before.sent
    assert after.sent[-1].summary.startswith("[coordinator] warning: the journal was missing")
    assert after.sent[-1].number == before.sent[-1].number + 1
    assert after.shared["architect"] == before.shared["architect"]


@pytest.mark.parametrize(
    ("last", "status", "phase"),
    [("shutdown", None, Phase.completed), ("progress", None, Phase.active), ("progress", "completed", Phase.completed)],
)
def test_without_a_session_file_the_shared_state_or_the_last_message_says_whether_it_was_over(
    story: Story, last: str, status: str | None, phase: Phase
) -> None:
    story.add(task("DEV-001"))
    story.tell(compose("coordinator", kind=last))
    (story.project() / "session.json").unlink()
    meta = story.folder / ".msg" / "meta.json"
    meta.write_text(json.dumps({"status": status})) if status else meta.unlink()

    assert rebuilt(story.folder).lifecycle.phase is phase


def test_the_files_of_older_versions_are_read_where_there_are_no_newer_ones(story: Story) -> None:
    story.add(task("DEV-001"))
    story.tell(FeedbackGiven(Feedback(description="too long", timestamp=story.now)))
    folder = story.project()
    (folder / ".msg" / "meta.json").rename(folder / "shared-memory.json")
    (folder / "session.json").unlink()
    (folder / "team-session.json").write_text('{"task": "Add a greeting", "team_name": "night", "status": "completed"}')

    state = rebuilt(folder)

    assert (state.session.requirement, state.session.team_name) == ("Add a greeting", "night")
    assert [item.description for item in state.feedback] == ["too long"]
    assert state.lifecycle.phase is Phase.completed


@pytest.mark.parametrize(("team", "said"), [("night", ["half way"]), ("day", [])])
def test_the_bus_of_an_older_version_is_found_by_the_name_of_the_team(story: Story, team: str, said: list[str]) -> None:
    story.add(task("DEV-001"))
    story.tell(compose("developer", kind="progress", summary="half way"))
    folder = story.project()
    older = folder.parents[1] / ".team-msg" / "night"
    older.mkdir(parents=True)
    (folder / ".msg" / "messages.jsonl").rename(older / "messages.jsonl")
    (folder / "session.json").unlink()
    (folder / "team-session.json").write_text(json.dumps({"task": "Add a greeting", "team_name": team}))

    state = rebuilt(folder)

    heard = [message.summary for message in state.messages.sent if message.type == "progress"]
    assert heard == [f"[developer] {text}" for text in said]


def test_a_session_without_rows_can_be_planned_again(story: Story) -> None:
    story.project()

    state = rebuilt(story.folder)

    (first, *_) = decide(state, DEVELOPMENT, story.now)
    assert state.tasks.plan == {}
    assert isinstance(first, Record)
    assert [type(event) for event in first.events] == [TasksAdded]


def test_a_table_with_a_mistake_is_refused_with_its_line(story: Story) -> None:
    story.add(task("DEV-001"))
    path = story.project() / TABLE
    path.write_text(path.read_text().replace("pending", "lost"))

    with pytest.raises(UserError, match=f"{story.session}/tasks.csv line 2: "):
        rebuilt(story.folder)


@pytest.mark.parametrize("body", [None, b"\xff\xfe"])
def test_a_table_that_cannot_be_read_is_refused(story: Story, body: bytes | None) -> None:
    path = story.folder / TABLE
    if body:
        path.write_bytes(body)

    with pytest.raises(UserError, match=r'Cannot read ".*tasks\.csv"'):
        rebuilt(story.folder)


def test_line_breaks_in_cells_are_kept(story: Story) -> None:
    story.add(task("DEV-001", description="one\r\ntwo\nthree"))
    story.project()

    assert rebuilt(story.folder).tasks.plan[TaskId("DEV-001")].description == "one\r\ntwo\nthree"


def test_a_rebuilt_session_writes_the_same_table(story: Story) -> None:
    story.add(task("DEV-001"), task("DEV-002", "DEV-001"))
    story.complete("DEV-001", findings='done, with a "quote" and\na break')
    story.fail("DEV-002")
    before = (story.project() / TABLE).read_bytes()
    created, events = rebuild.session_events(story.folder, Engine.wave, TEAMS, base=HEAD, branch="main")

    journal = Journal(story.top / "new.db")
    state = session_log.create(journal, events, at=created)
    projector = Projector(story.folder, journal, DEVELOPMENT)
    edits = projector.edits(state)
    projector.write(state)
    journal.close()

    assert edits == Edited()
    assert (story.folder / TABLE).read_bytes() == before


def test_the_verdict_of_a_review_survives(story: Story) -> None:
    story.add(task("REVIEW-001"))
    story.complete("REVIEW-001", review=review(4, CRITICAL))
    story.project()

    verdict = development(rebuilt(story.folder)).verdicts[TaskId("REVIEW-001")]

    assert (verdict.score, verdict.signal) == (4.0, "REVISION_NEEDED")


def test_the_folders_of_both_engines_are_found_from_the_oldest_to_the_newest(tmp_path: Path) -> None:
    for number, name in enumerate((".csv-wave/ids-b", ".team/IDS-a", ".csv-wave/ids-a", ".csv-wave/no-table")):
        folder = tmp_path / ".workflow" / name
        folder.mkdir(parents=True)
        if "no-table" not in name:
            (folder / TABLE).touch()
            os.utime(folder / TABLE, (number, number))

    found = [(engine, folder.name) for engine, folder in find.folders(tmp_path)]

    assert found == [(Engine.wave, "ids-b"), (Engine.beat, "IDS-a"), (Engine.wave, "ids-a")]
    assert find.folders(tmp_path / "elsewhere") == []


def test_the_session_file_is_json_that_people_can_read(story: Story) -> None:
    story.add_pipeline()

    document = json.loads((story.project() / "session.json").read_text())

    assert document["policy"]["concurrency"] == 3
    assert document["agents"] == {}


@pytest.mark.parametrize("name", ["session.json", ".msg/meta.json"])
def test_text_that_cannot_be_encoded_does_not_stop_a_rebuild(story: Story, name: str) -> None:
    story.sprint()
    story.project()
    document = json.loads((story.folder / name).read_text(encoding="utf-8"))
    texts = {"requirement": "Fix \ud800", "task_description": "\udfff", "team_name": "\udc80"}
    spoiled = {**document, **texts, "policy": {"auto\ud800": True}, "agents": {"\udfff": "mine"}}
    (story.folder / name).write_text(json.dumps(spoiled), encoding="utf-8")

    state = rebuilt(story.folder)

    assert all(progress.status is Status.completed for progress in state.tasks.progress.values())
    assert state.session.requirement.isprintable()


def test_a_folder_whose_name_is_not_utf_8_is_no_session(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b".workflow/.csv-wave/ids-\xff")
    folder.mkdir(parents=True)
    (folder / TABLE).write_text("id,description\nDEV-001,do it\n", encoding="utf-8")

    assert find.folders(tmp_path) == []


def test_a_pipe_in_the_place_of_a_record_is_not_waited_for(story: Story) -> None:
    story.sprint()
    story.project()
    for name in ("session.json", ".msg/messages.jsonl"):
        (story.folder / name).unlink()
        os.mkfifo(story.folder / name)

    assert len(rebuilt(story.folder).tasks.plan) == len(story.state.tasks.plan)
