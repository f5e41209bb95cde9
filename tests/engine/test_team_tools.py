"""What an agent can do with the tools, seen from the client of the protocol's own SDK."""

import json
from collections.abc import Callable
from contextlib import ExitStack

import anyio
import pytest
from mcp.types import CallToolResult, TextContent
from tests.core.conftest import Outcome, done
from tests.engine.conftest import NOW, SECRET, Office, client_of

from iterdev.core.collaboration.locks import LockGranted
from iterdev.core.collaboration.tool_schemas import ResourceLock
from iterdev.core.rules.outcomes import attempt_ended
from iterdev.core.session import events
from iterdev.core.session.attempts import AttemptReport
from iterdev.core.types import TaskId
from iterdev.engine.team_tools import Person, TeamTools
from iterdev.execution.tool_server.access import AttemptAccess
from iterdev.host.secrets import Redactor
from iterdev.store.session_folder import discoveries
from iterdev.store.session_log import SessionLog
from iterdev.teams.development.results import Review
from iterdev.teams.development.team import DEVELOPMENT

Call = tuple[str, dict[str, object]]
Said = tuple[bool, str]
SCORES = dict.fromkeys(("correctness", "completeness", "maintainability", "security"), 9)


def said(answer: CallToolResult) -> Said:
    """Whether the tool did it, and its words."""
    (content,) = answer.content
    assert isinstance(content, TextContent)
    return not answer.is_error, content.text


def calls(
    office: Office, *asked: Call, task: str = "DEV-001", after: Callable[[AttemptAccess], None] | None = None
) -> list[Said]:
    """What the tools answer to the agent of a task, one call after the other."""

    async def talk() -> list[Said]:
        async with office.server.opened():
            with office.server.access(office.job(task)) as caller:
                async with client_of(caller.server) as client:
                    answers = [said(await client.call_tool(name, arguments)) for name, arguments in asked]
                if after:
                    after(caller)
                return answers

    return anyio.run(talk)


def documents(office: Office, *asked: Call, task: str = "DEV-001") -> list[dict[str, object]]:
    answers = calls(office, *asked, task=task)
    assert [text for done, text in answers if not done] == []
    return [json.loads(text) for _, text in answers]


def log(**arguments: object) -> Call:
    return "team_msg", {"operation": "log", **arguments}


def lock(operation: str, resource: str = "database", **arguments: object) -> Call:
    return "lock", {"operation": operation, "resource": resource, **arguments}


def checkpoint(operation: str, **arguments: object) -> Call:
    return "checkpoint", {"operation": operation, **arguments}


def refusal(office: Office, call: Call, task: str = "DEV-001") -> str:
    """The words of the tool that does not do it; nothing has happened then."""
    before = office.log.state.messages.sent
    ((done, text),) = calls(office, call, task=task)
    assert not done
    assert office.log.state.messages.sent == before
    return text


def test_every_tool_is_offered_with_an_object_of_arguments(office: Office) -> None:
    async def listed() -> dict[str, object]:
        async with office.server.opened():
            with office.server.access(office.job()) as caller:
                async with client_of(caller.server) as client:
                    return {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}

    tools = anyio.run(listed)

    assert set(tools) == {"team_msg", "board", "lock", "checkpoint", "report_result"}
    assert all(schema["type"] == "object" for schema in tools.values())
    assert "$ref" not in json.dumps(tools)


def test_a_message_names_its_team_and_what_it_is_about(office: Office) -> None:
    (message,) = documents(office, log(team="iterdev", summary="half done", ref="src/app.py"))

    assert message["data"] == {"ref": "src/app.py", "task": "DEV-001"}


def test_an_agent_has_no_other_team_than_its_own(office: Office) -> None:
    assert refusal(office, log(team="night", summary="hello")) == 'The team of this session is "iterdev", not "night".'


@pytest.mark.requirement("R94", "R171")
def test_a_message_is_sent_in_the_name_of_the_role_and_its_task(office: Office) -> None:
    (sent,) = documents(office, log(type="progress", summary="half way", data={"per_cent": 50}))

    last = office.log.state.messages.sent[-1]
    assert sent["id"] == f"MSG-{len(office.log.state.messages.sent):03d}"
    assert (last.sender, last.to, last.type, last.summary) == (
        "developer",
        "coordinator",
        "progress",
        "[developer] half way",
    )
    assert last.data == {"per_cent": 50, "task": "DEV-001"}


def test_what_is_left_out_of_a_message_is_filled_in(office: Office) -> None:
    documents(office, log(), ("team_msg", {"operation": "broadcast", "summary": "all clear"}))

    first, second = office.log.state.messages.sent[-2:]
    assert (first.type, first.to, first.summary) == ("message", "coordinator", "[developer] message to coordinator")
    assert (second.to, second.summary) == ("all", "[developer] all clear")


def test_messages_are_listed_and_read(office: Office) -> None:
    documents(office, log(type="progress", summary="one"), log(type="blocker", summary="two"))

    everything, some, one = documents(
        office,
        ("team_msg", {"operation": "list"}),
        ("team_msg", {"operation": "list", "from": "developer", "last": 1}),
        ("team_msg", {"operation": "read", "id": "MSG-001"}),
    )

    assert len(everything["messages"]) == len(office.log.state.messages.sent)
    assert [message["summary"] for message in some["messages"]] == ["[developer] two"]
    assert (one["id"], one["from"]) == ("MSG-001", "coordinator")


@pytest.mark.requirement("R115")
def test_what_a_role_shares_can_be_got_by_the_others(office: Office) -> None:
    documents(office, log(type="state_update", data={"approach": "one file"}), log(type="state_update", data={"n": 2}))

    everything, one = documents(
        office,
        ("team_msg", {"operation": "get_state"}),
        ("team_msg", {"operation": "get_state", "role": "developer"}),
        task="REVIEW-001",
    )

    assert everything["role_state"]["developer"] == one["state"]
    assert (one["role"], one["state"]["approach"], one["state"]["n"]) == ("developer", "one file", 2)


def test_an_agent_takes_back_what_it_said_itself(office: Office) -> None:
    (sent,) = documents(office, log(summary="one"))
    others = refusal(office, ("team_msg", {"operation": "delete", "id": sent["id"]}), task="VERIFY-001")

    (deleted,) = documents(office, ("team_msg", {"operation": "delete", "id": sent["id"]}))

    assert "is not yours" in others
    assert deleted == {"deleted": sent["id"]}
    assert "[developer] one" not in [message.summary for message in office.log.state.messages.sent]


def test_who_was_heard_is_told_with_the_newest_first(office: Office) -> None:
    documents(office, log(summary="one"), log(summary="two"))

    (status,) = documents(office, ("team_msg", {"operation": "status"}))

    assert [(member["name"], member["count"]) for member in status["members"]] == [("developer", 2), ("coordinator", 2)]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (log(**{"from": "reviewer"}), 'You are the developer of DEV-001 and cannot speak as "reviewer".'),
        (log(**{"from": "coordinator"}), 'cannot speak as "coordinator"'),
        (log(session_id="ids-other-20260101"), 'not for "ids-other-20260101"'),
        (("team_msg", {"operation": "list", "session_id": "ids-other-20260101"}), 'not for "ids-other-20260101"'),
        (log(to="reviewer"), 'the developer writes to "coordinator" or to "all", not to "reviewer"'),
        (log(type="sprint_complete"), '"sprint_complete" is a message of the coordinator'),
        (log(type="review_passed"), '"review_passed" is a message of the reviewer'),
        (log(type="progress", data="text"), "Expected `object`, got `str` - at `$.data`"),
        (log(task="DEV-002"), "Object contains unknown field `task`"),
        (("team_msg", {"operation": "shout"}), "Invalid enum value 'shout' - at `$.operation`"),
        (
            ("team_msg", {"operation": "delete", "id": "MSG-001"}),
            "MSG-001 is not yours: it was sent by the coordinator.",
        ),
        (("team_msg", {"operation": "delete", "id": "MSG-999"}), 'There is no message "MSG-999"'),
        (("team_msg", {"operation": "clear"}), "Only a person clears the bus"),
        (("team_msg", {"operation": "list", "last": 101}), "Expected `int` <= 100 - at `$.last`"),
        (("team_msg", {"operation": "read", "id": "MSG-999"}), 'There is no message "MSG-999"; there are 2.'),
        (("team_msg", {"operation": "get_state", "role": "tester"}), '"tester" has shared nothing yet'),
        (("board", {"operation": "add", "type": "rumour"}), 'There is no kind of discovery "rumour"'),
        (("board", {"operation": "add", "type": "convention"}), 'The "data" of a convention needs "name".'),
        (lock("acquire", task="DEV-002"), 'You are the developer of DEV-001 and cannot act as "DEV-002".'),
        (lock("release", task="REVIEW-001", role="reviewer"), 'cannot act as "reviewer of REVIEW-001"'),
        (lock("acquire", role="tester"), 'cannot act as "tester"'),
        (lock("acquire", session_id="ids-other-20260101"), 'not for "ids-other-20260101"'),
        (lock("list", session_id="ids-other-20260101"), 'not for "ids-other-20260101"'),
        (lock("acquire", " "), "The name of the resource is empty"),
        (lock("steal"), "Invalid enum value 'steal' - at `$.operation`"),
        (checkpoint("save", task="DEV-002"), 'cannot act as "DEV-002"'),
        (checkpoint("restore", task="DEV-002"), 'cannot act as "DEV-002"'),
        (checkpoint("restore", session_id="ids-other-20260101"), 'not for "ids-other-20260101"'),
        (checkpoint("save", data=[1]), "Expected `object`, got `array` - at `$.data`"),
        (("report_result", {}), "Object missing required field `result`"),
    ],
)
def test_a_call_that_cannot_be_granted_says_why(office: Office, call: Call, words: str) -> None:
    assert words in refusal(office, call)


def test_a_message_never_says_that_it_is_of_another_task(office: Office) -> None:
    documents(office, log(data={"task": "DEV-002"}))

    assert office.log.state.messages.sent[-1].data["task"] == "DEV-001"


def test_the_board_is_read_and_extended_in_the_name_of_the_task(office: Office) -> None:
    found = {"operation": "add", "type": "convention", "data": {"name": "tabs"}}

    added, again, read, others = documents(
        office,
        ("board", found),
        ("board", found),
        ("board", {"operation": "read"}),
        ("board", {"operation": "read", "type": "implementation"}),
    )

    assert (added["added"], again["added"]) == (True, False)
    (line,) = discoveries.read(office.folder / discoveries.NAME)
    assert (line.worker, line.type, line.data) == ("DEV-001", "convention", {"name": "tabs"})
    assert [one["data"] for one in read["discoveries"]] == [{"name": "tabs"}]
    assert others == {"discoveries": []}


def test_a_result_is_checked_at_once_and_can_be_mended(office: Office) -> None:
    result = {"id": "REVIEW-001", "status": "completed", "findings": "fine"}
    reported: list[object] = []

    answers = calls(
        office,
        ("report_result", {"result": result}),
        ("report_result", {"result": result | {"scores": SCORES | {"security": 11}}}),
        ("report_result", {"result": result | {"scores": SCORES, "id": "REVIEW-002"}}),
        ("report_result", {"result": result | {"scores": SCORES}}),
        ("report_result", {"result": result}),
        task="REVIEW-001",
        after=lambda caller: reported.append(caller.reported),
    )

    assert [done for done, _ in answers] == [False, False, False, True, False]
    assert "missing required field `scores`" in answers[0][1]
    assert "Expected `float` <= 10.0 - at `$.scores.security`" in answers[1][1]
    assert '"id" is "REVIEW-002", expected "REVIEW-001"' in answers[2][1]
    (result_that_counts,) = reported
    assert isinstance(result_that_counts, Review)
    assert result_that_counts.findings == "fine"


def test_no_secret_gets_into_the_journal_or_onto_the_board(office: Office) -> None:
    found = {"operation": "add", "type": "convention", "data": {"name": f"use {SECRET}"}}

    documents(office, log(summary=SECRET, data={"deep": [SECRET]}), ("board", found))

    kept = str(office.journal.read(office.log.session)) + (office.folder / discoveries.NAME).read_text(encoding="utf-8")
    assert SECRET not in kept
    assert kept.count("[secret]") == 3


@pytest.mark.requirement("R124", "R125", "R126")
def test_a_lock_is_held_in_the_name_of_the_task_of_the_token(office: Office) -> None:
    granted, again = documents(office, lock("acquire"), lock("acquire", task="DEV-001", role="developer"))
    refused, theirs, listed = documents(office, lock("acquire"), lock("release"), lock("list"), task="REVIEW-001")
    released, gone = documents(office, lock("release"), lock("list"))

    assert (granted["granted"], again["granted"]) == (True, True)
    assert (granted["locked_by_task_id"], granted["holder_role"]) == ("DEV-001", "developer")
    assert (refused["granted"], refused["locked_by_task_id"]) == (False, "DEV-001")
    assert "held by DEV-001 (developer)" in str(refused["why"])
    assert (theirs["released"], released["released"]) == (False, True)
    assert listed["resource_locks"]["database"]["locked_by_task_id"] == "DEV-001"
    assert gone == {"resource_locks": {}, "waiting": {}}
    kinds = [message.type for message in office.log.state.messages.sent[2:]]
    assert kinds == ["resource_locked", "resource_contention", "resource_unlocked"]


@pytest.mark.requirement("R126")
@pytest.mark.parametrize("outcome", [done(), events.Failed(error="it died"), events.Interrupted()])
def test_the_locks_of_an_attempt_are_free_when_it_is_over(office: Office, outcome: Outcome) -> None:
    documents(office, lock("acquire", "a"), lock("acquire", "b"))
    fence = office.log.state.attempts.running[TaskId("DEV-001")].fence
    report = AttemptReport(task=TaskId("DEV-001"), number=1, fence=fence, requests=1, outcome=outcome)
    office.log.transact(lambda state, at: attempt_ended(state, DEVELOPMENT, report, at))

    listed, mine = documents(office, lock("list"), lock("acquire", "a"), task="REVIEW-001")

    assert listed["resource_locks"] == {}
    assert mine["granted"]


@pytest.mark.requirement("R128")
def test_an_agent_whose_waiting_closes_a_circle_is_told_that_it_lost_its_locks(office: Office) -> None:
    documents(office, lock("acquire", "a"))
    documents(office, lock("acquire", "b"), task="REVIEW-001")
    documents(office, lock("acquire", "b"))

    (answer,) = documents(office, lock("acquire", "a"), task="REVIEW-001")

    assert (answer["granted"], answer["aborted"]) == (False, True)
    assert list(office.log.state.attempts.aborted) == ["REVIEW-001"]


def test_the_engine_hears_of_every_lock_and_of_what_others_wrote(office: Office) -> None:
    office.job()
    other = SessionLog(office.journal, office.log.session, now=lambda: NOW)
    asked = ResourceLock(operation="acquire", resource="a", task="VERIFY-001", role="tester")
    TeamTools(other, office.folder, redact=Redactor([])).use(Person(), asked)

    (listed,) = documents(office, lock("list"))
    heard = office.changes
    documents(office, lock("acquire", "b"))

    assert list(listed["resource_locks"]) == ["a"]
    assert (heard, office.changes) == (1, 2)


@pytest.mark.requirement("R135", "R136")
def test_a_checkpoint_belongs_to_the_task_of_the_token(office: Office) -> None:
    nothing, *_, restored = documents(
        office,
        checkpoint("restore"),
        *(checkpoint("save", data={"step": step}) for step in range(6)),
        checkpoint("restore", task="DEV-001"),
    )
    theirs, every, none = documents(
        office, checkpoint("restore"), checkpoint("list"), checkpoint("list", task="REVIEW-001"), task="REVIEW-001"
    )

    assert nothing == {
        "restored": False,
        "why": "Nothing was restored: there is no checkpoint of DEV-001",
        "hint": "begin DEV-001 at its first step",
    }
    assert restored["data"] == {"step": 5}
    assert theirs["restored"] is False
    kept = every["task_checkpoints"]["DEV-001"]
    assert len(kept) == 5
    assert kept[0]["state_data_pointer"] == restored["state_data_pointer"]
    assert none == {"task_checkpoints": {}}
    kinds = [message.type for message in office.log.state.messages.sent]
    assert (kinds.count("context_checkpoint_saved"), kinds.count("context_restored")) == (6, 1)


def test_no_secret_gets_into_a_lock_or_a_checkpoint(office: Office) -> None:
    documents(office, lock("acquire", f"door {SECRET}"), checkpoint("save", data={"deep": [SECRET]}))

    (kept,) = (office.folder / "checkpoints").iterdir()
    assert SECRET not in str(office.journal.read(office.log.session)) + kept.read_text(encoding="utf-8")


def test_each_of_several_agents_speaks_for_itself(office: Office) -> None:
    async def agent(task: str) -> None:
        with office.server.access(office.job(task)) as caller:
            async with client_of(caller.server) as client:
                await client.call_tool("team_msg", {"operation": "log", "summary": f"from {task}"})

    async def talk() -> None:
        async with office.server.opened(), anyio.create_task_group() as group:
            for task in ("DEV-001", "REVIEW-001", "VERIFY-001"):
                group.start_soon(agent, task)

    anyio.run(talk)

    told = {message.summary: message.data["task"] for message in office.log.state.messages.sent[2:]}
    assert told == {
        "[developer] from DEV-001": "DEV-001",
        "[reviewer] from REVIEW-001": "REVIEW-001",
        "[tester] from VERIFY-001": "VERIFY-001",
    }


def test_tokens_are_all_different(office: Office) -> None:
    with ExitStack() as attempts:
        tokens = {attempts.enter_context(office.server.access(office.job())).server.token for _ in range(20)}

    assert len(tokens) == 20
    assert all(len(token) > 40 for token in tokens)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (log(summary="x" * 5_000), "at most 4000 are possible"),
        (log(summary="x", data={"a": "x" * 70_000}), "at most 65536 are possible; name a file instead"),
        (("board", {"operation": "add", "type": "convention", "data": {"name": "x" * 70_000}}), "at most 65536"),
        (lock("acquire", "x" * 5_000), "The name of the resource has"),
    ],
)
def test_what_is_too_large_for_others_to_read_is_refused(office: Office, call: Call, words: str) -> None:
    assert words in refusal(office, call)


def test_a_task_cannot_hold_locks_without_end(office: Office) -> None:
    office.job()
    until = office.log.now() + 1000
    held = (LockGranted(resource=f"r{n}", task=TaskId("DEV-001"), role="developer", until=until) for n in range(200))
    office.log.record(*held)

    assert refusal(office, lock("acquire", "one more")) == "DEV-001 holds 200 locks; release some first."
    (renewed,) = documents(office, lock("acquire", "r1"))
    assert renewed["granted"]
