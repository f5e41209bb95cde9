"""What engines and hosts send each other: orders, reports, heartbeats, questions and answers, each as bytes.

Within one version fields are only added, with defaults: unknown ones are ignored. What only one side may decide, such
as the command of an agent, is in no message.
"""

import zlib
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import TypeVar

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from iterdev.core.errors import HostError
from iterdev.core.results import Discovery, Result, Usage
from iterdev.core.session.attempts import AttemptReport, LandingTestReport, Success
from iterdev.core.session.events import Limited
from iterdev.core.settings import NotifySettings, RemoteSettings
from iterdev.core.types import TaskFields, TaskId
from iterdev.execution.contract import Job
from iterdev.teams.table import TEAMS

WIRE = 1
LARGEST = 1_000_000
"""Bytes of an encoded message: servers refuse larger ones."""
LARGEST_DECODED = 64_000_000
LINES, LINES_BYTES = 20, 4096
"""Of what an agent said, in a heartbeat."""

RESULTS = {
    f"{team.name}.{role.result.__name__}": role.result for team in TEAMS.values() for role in team.roles.values()
}
NAMES = {kind: name for name, kind in RESULTS.items()}
FIELDS = {team.task_fields.__struct_config__.tag: team.task_fields for team in TEAMS.values()}


class Message(Struct, frozen=True, kw_only=True):
    wire: int = WIRE


class Order(Message, frozen=True, kw_only=True):
    """Asks a host for one attempt, or for one test of work that waits to land."""

    job: Job
    repository: str
    """The URL of the git remote, by which the host finds its own entry for the repository."""
    needs: tuple[str, ...] = ()
    """Commits that have to be in the host's mirror."""
    documents: str = ""
    """The commit with the documents of the session, one of those that are needed."""
    heartbeat_timeout: float = 120


class HostReport(Message, frozen=True, kw_only=True):
    """What became of an order."""

    host: str
    report: Raw
    refs: tuple[str, ...] = ()
    """Those that were pushed."""
    kept: str = ""
    """The id of the file in git that has the report too, and the log."""
    made: tuple[str, ...] = ()
    """What was installed for the programs in the workspace."""
    problems: tuple[str, ...] = ()
    """What could not be."""
    discoveries: tuple[Discovery, ...] = ()
    """What the agent added to the board."""
    log: str = ""
    """What the agent said; only in that file."""


class Heartbeat(Message, frozen=True, kw_only=True):
    host: str
    requests: int = 0
    usage: Usage = Usage()
    said: int = 0
    """How many lines the agent has said so far."""
    lines: tuple[str, ...] = ()
    """The last ones."""


class ToolUse(Struct, frozen=True, kw_only=True, tag=True):
    tool: str
    arguments: Mapping[str, object] = {}


class BudgetQuestion(Struct, frozen=True, kw_only=True, tag=True):
    """Whether the agent may be asked again."""

    spent: Usage


class Call(Message, frozen=True, kw_only=True):
    """What an attempt asks of its session."""

    session: str
    task: TaskId
    fence: int
    question: ToolUse | BudgetQuestion


class Answer(Message, frozen=True, kw_only=True):
    content: Mapping[str, object] = {}
    error: str = ""


AnyMessage = TypeVar("AnyMessage", bound=Message)


def order_of(job: Job, repository: str, *, heartbeat_timeout: float, documents: str = "") -> Order:
    """The order without what the host decides itself, and with every commit that it has to have."""
    settings = replace(job.settings, agents={}, notify=NotifySettings(), remote=RemoteSettings())
    further = (job.merge.commit if job.merge else "", documents, *job.earlier)
    return Order(
        job=replace(job, settings=settings),
        repository=repository,
        needs=tuple(dict.fromkeys((job.base, job.session_base, *filter(None, further)))),
        documents=documents,
        heartbeat_timeout=heartbeat_timeout,
    )


def heartbeat_of(host: str, requests: int, usage: Usage, said: Sequence[str], *, count: int = 0) -> Heartbeat:
    """With as many of the last lines as there is room for; `count` is how many there were."""
    sizes = [len(line.encode()) for line in said[-LINES:]]
    fitting = takewhile(lambda count: sum(sizes[-count:]) <= LINES_BYTES, range(1, len(sizes) + 1))
    kept = max(fitting, default=0)
    lines = tuple(said[-kept:]) if kept else ()
    return Heartbeat(host=host, requests=requests, usage=usage, said=count or len(said), lines=lines)


def host_report_of(
    report: AttemptReport | LandingTestReport, *, host: str, now: float, refs: Sequence[str] = ()
) -> HostReport:
    """When a provider answers again is sent as seconds from now: the clock of the engine may differ."""
    return HostReport(host=host, report=Raw(msgspec.json.encode(_moved(report, -now))), refs=tuple(refs))


def report_of(message: HostReport, job: Job, *, now: float) -> AttemptReport | LandingTestReport:
    """The report on a job, by the engine's clock."""
    try:
        document = msgspec.json.decode(message.report)
        if job.together:
            return msgspec.convert(document, LandingTestReport)
        report = msgspec.convert(document, AttemptReport)
        if isinstance(report.outcome, Success):
            # Its type is that of the role.
            result = msgspec.convert(document["outcome"]["result"], job.role.result)
            return replace(report, outcome=replace(report.outcome, result=result))
    except msgspec.DecodeError as error:
        raise _unreadable(f"The report of {message.host} on {job.task.id}", error) from error
    return _moved(report, now)


def encode(message: Message, *, most: int = LARGEST) -> bytes:
    data = zlib.compress(msgspec.json.encode(message, enc_hook=_name))
    if len(data) > most:
        raise HostError(
            f"The {type(message).__name__} has {len(data):,} bytes, and no message may have more than {most:,}",
            hint="shorten the description of the task, or split the task",
        )
    return data


def decode(data: bytes, kind: type[AnyMessage]) -> AnyMessage:
    """The message; one that cannot be read, or is of another version, is refused in one sentence."""
    what = f"The {kind.__name__}"
    try:
        text = _unpacked(data)
        version = msgspec.json.decode(text, type=Message).wire
        if version == WIRE:
            return msgspec.json.decode(text, type=kind, dec_hook=_meant)
    except (zlib.error, ValueError) as error:
        raise _unreadable(what, error) from error
    raise HostError(
        f"{what} is of version {version} of the messages, and this iterdev knows version {WIRE}",
        hint="use the same version of iterdev on all hosts",
    )


def _unpacked(data: bytes) -> bytes:
    stream = zlib.decompressobj()
    text = stream.decompress(data, LARGEST_DECODED)
    if not stream.eof:
        raise ValueError("it is cut off, or too large")
    return text


def _unreadable(what: str, error: Exception) -> HostError:
    return HostError(f"{what} cannot be read: {error}", hint="use the same version of iterdev on all hosts")


def _moved(report: AttemptReport | LandingTestReport, seconds: float) -> AttemptReport | LandingTestReport:
    """The report with the time at which a provider answers again moved, if it has one."""
    match report:
        case AttemptReport(outcome=Limited(reset_at=float(time)) as limited):
            return replace(report, outcome=replace(limited, reset_at=time + seconds))
        case _:
            return report


def _name(value: object) -> object:
    if isinstance(value, type) and value in NAMES:
        return NAMES[value]
    raise NotImplementedError(f"{type(value).__name__} is in no message")


def _meant(kind: type, value: object) -> object:
    """A role's type of result by its name, and the fields of a task by the team that they are of."""
    match value:
        case {"type": str(name)} if kind is TaskFields and name in FIELDS:
            return msgspec.convert(value, FIELDS[name])
        case str(name) if kind == type[Result] and name in RESULTS:
            return RESULTS[name]
        case _ if kind is TaskFields or kind == type[Result]:
            raise ValueError(f"{str(value)[:80]!r} is known to no team")
        case _:
            return value
