"""Messages between engines and hosts: they say the same on the other side, or are refused in one sentence."""

import random
import zlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.conftest import done, task

from iterdev.core.errors import HostError
from iterdev.core.results import Usage
from iterdev.core.session.attempts import AttemptReport, LandingTestReport, Success
from iterdev.core.session.conflicts import MergeInProgress
from iterdev.core.session.events import Failed, Interrupted, Limited, Unmet
from iterdev.core.settings import AgentSettings, Settings
from iterdev.core.types import TaskId
from iterdev.core.verification import Verification
from iterdev.execution import wire_format
from iterdev.execution.contract import Job
from iterdev.execution.wire_format import (
    Answer,
    BudgetQuestion,
    Call,
    Heartbeat,
    HostReport,
    Message,
    Order,
    ToolUse,
    decode,
    encode,
    heartbeat_of,
    host_report_of,
    order_of,
    report_of,
)
from iterdev.teams.development.team import DEVELOPMENT
from iterdev.teams.table import TEAMS

DEV = TaskId("DEV-001")
COMMITS = st.text("0123456789abcdef", min_size=40, max_size=40)
ROLES = [(team, name) for team in TEAMS.values() for name in team.roles]


def a_job(**fields: object) -> Job:
    role = DEVELOPMENT.roles[task("DEV-001").role]
    plain = {
        "session": "s",
        "shared_name": "s@1",
        "task": task("DEV-001"),
        "role": role,
        "number": 1,
        "fence": 7,
        "agent": "mine",
        "settings": Settings(),
        "base": "b" * 40,
        "session_base": "b" * 40,
        "prompt": "Do it.",
        "schema": DEVELOPMENT.result_schema(role.name),
        "limit": 60.0,
    }
    job = Job(**(plain | fields))
    # A JSON document, which knows no tuples.
    return msgspec.structs.replace(job, schema=msgspec.json.decode(msgspec.json.encode(job.schema)))


def ordered(job: Job) -> Order:
    return order_of(job, "git@example.com:shop.git", heartbeat_timeout=30)


def sent(report: AttemptReport | LandingTestReport, job: Job, *, at: float, received: float) -> object:
    data = encode(host_report_of(report, host="builder-1", now=at, refs=["refs/iterdev/s/DEV-001/1"]))
    return report_of(decode(data, HostReport), job, now=received)


@given(
    prompt=st.text(),
    base=COMMITS,
    number=st.integers(1, 10**6),
    limit=st.floats(0, 1e9),
    changed=st.lists(st.text(), max_size=5).map(tuple),
    merge=st.none() | st.builds(MergeInProgress, task=st.just(TaskId("DEV-002")), commit=COMMITS),
)
def test_an_order_survives_encoding(**fields: object) -> None:
    order = ordered(a_job(**fields))

    assert decode(encode(order), Order) == order


@pytest.mark.parametrize(("team", "role"), ROLES, ids=lambda value: getattr(value, "name", value))
def test_a_job_of_every_role_of_every_team_survives(team: object, role: str) -> None:
    order = ordered(a_job(role=team.roles[role], schema=team.result_schema(role)))

    assert decode(encode(order), Order).job.role == team.roles[role]


@pytest.mark.parametrize(
    "message",
    [
        Heartbeat(host="builder-1", requests=2, usage=Usage(cost_usd=1), lines=("working",)),
        Call(session="s", task=DEV, fence=7, question=ToolUse(tool="team_log", arguments={"summary": "half done"})),
        Call(session="s", task=DEV, fence=7, question=BudgetQuestion(spent=Usage(cost_usd=1))),
        Answer(content={"granted": True}),
        Answer(error="the budget is used up"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_the_other_messages_survive_too(message: Message) -> None:
    assert decode(encode(message), type(message)) == message


def test_an_order_names_every_commit_that_is_needed_once() -> None:
    merge = MergeInProgress(task=TaskId("DEV-002"), commit="c" * 40)

    assert ordered(a_job(merge=merge)).needs == ("b" * 40, "c" * 40)


def test_the_commands_of_agents_stay_with_the_engine() -> None:
    settings = Settings(agents={"mine": AgentSettings(command=("sh", "-c", "secret"))})

    assert b"secret" not in zlib.decompress(encode(ordered(a_job(settings=settings))))


def test_fields_of_a_later_edition_are_ignored() -> None:
    order = ordered(a_job())
    document = msgspec.json.decode(zlib.decompress(encode(order)))
    document["later"] = document["job"]["later"] = document["job"]["task"]["later"] = [1]

    assert decode(zlib.compress(msgspec.json.encode(document)), Order) == order


@pytest.mark.parametrize(
    "outcome",
    [
        done("did it", commit="c" * 40),
        Failed(error="it broke"),
        Interrupted(problem="the disk is full"),
        Interrupted(host_died=True),
        Unmet(),
        Limited(error="429"),
    ],
    ids=lambda outcome: type(outcome).__name__,
)
def test_a_report_survives(outcome: Success | Failed | Interrupted | Unmet | Limited) -> None:
    report = AttemptReport(task=DEV, number=1, fence=7, requests=2, outcome=outcome, denied=("Bash: make",))
    kind = type(outcome.result) if isinstance(outcome, Success) else DEVELOPMENT.roles["developer"].result
    job = a_job(role=msgspec.structs.replace(a_job().role, result=kind))

    assert sent(report, job, at=0, received=0) == report


def test_the_report_of_a_landing_test_survives() -> None:
    report = LandingTestReport(tasks=(DEV,), verification=Verification(pass_rate=0.5, failures=("test_a",)))

    assert sent(report, a_job(together=(DEV,)), at=0, received=0) == report


def test_a_provider_answers_again_as_many_seconds_from_now_whatever_the_clock_of_the_host_says() -> None:
    limited = Limited(error="429", reset_at=5600.0)
    report = AttemptReport(task=DEV, number=1, fence=7, requests=1, outcome=limited)

    received = sent(report, a_job(), at=5000, received=90000)

    assert received.outcome.reset_at == 90600


@given(st.lists(st.text(max_size=3000), max_size=40))
def test_a_heartbeat_has_the_last_lines_that_there_is_room_for(said: list[str]) -> None:
    lines = list(heartbeat_of("builder-1", 1, Usage(), said).lines)

    size = sum(len(line.encode()) for line in lines)
    assert lines == said[len(said) - len(lines) :]
    assert len(lines) <= wire_format.LINES
    assert size <= wire_format.LINES_BYTES
    if len(lines) < min(len(said), wire_format.LINES):
        assert size + len(said[-len(lines) - 1].encode()) > wire_format.LINES_BYTES


def test_a_message_of_another_version_is_refused() -> None:
    order = msgspec.structs.replace(ordered(a_job()), wire=2)

    with pytest.raises(HostError, match="The Order is of version 2 of the messages, and this iterdev knows version 1"):
        decode(encode(order), Order)


def test_a_message_that_is_too_large_is_not_sent() -> None:
    noise = "".join(random.Random(7).choices("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", k=1_600_000))

    with pytest.raises(HostError, match="no message may have more than 1,000,000"):
        encode(ordered(a_job(prompt=noise)))


def test_what_unpacks_to_more_than_a_message_can_be_is_refused() -> None:
    bomb = zlib.compress(b" " * (wire_format.LARGEST_DECODED + 1))

    with pytest.raises(HostError, match="cut off, or too large"):
        decode(bomb, Order)


@given(st.binary() | st.binary().map(zlib.compress) | st.text().map(lambda text: zlib.compress(text.encode())))
def test_anything_else_is_refused_in_one_sentence(data: bytes) -> None:
    with pytest.raises(HostError, match=r"^The Order (cannot be read|is of version)"):
        decode(data, Order)


@pytest.mark.parametrize(("place", "value"), [("role", "nobody.Nothing"), ("task", {"type": "Nothing"})])
def test_an_order_for_a_team_that_is_not_known_is_refused(place: str, value: object) -> None:
    document = msgspec.json.decode(zlib.decompress(encode(ordered(a_job()))))
    document["job"][place]["result" if place == "role" else "fields"] = value

    with pytest.raises(HostError, match=r"The Order cannot be read: .*is known to no team"):
        decode(zlib.compress(msgspec.json.encode(document)), Order)
