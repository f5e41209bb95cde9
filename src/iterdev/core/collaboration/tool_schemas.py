"""The tools that agents are given: what each is called, what it takes, and what it is for."""

from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from iterdev.core.collaboration.messages import DEFAULT_LAST, Last
from iterdev.mcp.tools import Tool


def _one_of(text: str) -> Meta:
    return Meta(description=text, extra_json_schema={"type": "string"})


class TeamMsg(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    operation: Annotated[
        Literal["log", "broadcast", "list", "read", "status", "delete", "clear", "get_state"],
        _one_of(
            "log: send a message; broadcast: send it to all; list: the last messages; read: one message; "
            "status: the senders and their last messages; get_state: what the roles share; delete: a message of yours; "
            "clear: empty the bus, which only a person may"
        ),
    ]
    sender: Annotated[str, Meta(description="list: only from this role; log: your own role, or nothing")] = field(
        name="from", default=""
    )
    to: Annotated[str, Meta(description='log: "coordinator" (default) or "all"; list: only to this one')] = ""
    kind: Annotated[
        str, Meta(description='log: such as "progress", "blocker" or "state_update"; list: only of this type')
    ] = field(name="type", default="")
    summary: Annotated[str, Meta(description="log: the message in one sentence")] = ""
    data: Annotated[
        dict[str, object], Meta(description="log: more for programs to read; of a state_update, what you share")
    ] = {}
    ref: Annotated[str, Meta(description="log: what it is about, such as a file, a task or a commit")] = ""
    last: Annotated[Last, Meta(description="list: how many")] = DEFAULT_LAST
    id: Annotated[str, Meta(description="read, delete: the id of the message, such as MSG-007")] = ""
    role: Annotated[str, Meta(description="get_state: only of this role")] = ""
    session_id: Annotated[str, Meta(description="your own session, or nothing")] = ""
    team: Annotated[str, Meta(description="the name of your own team, or nothing")] = ""


class Board(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    operation: Annotated[
        Literal["read", "add"], _one_of("read: what the others found; add: something that they should know")
    ]
    kind: Annotated[
        str, Meta(description="the kind of discovery: design_decision, implementation, review_finding, convention, ...")
    ] = field(name="type", default="")
    data: Annotated[dict[str, object], Meta(description="add: the discovery")] = {}


class ResourceLock(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    operation: Annotated[
        Literal["acquire", "release", "list"],
        _one_of(
            "acquire: keep others from a resource, or renew your lock; release: let others have it; "
            "list: who holds what, and who waits for it"
        ),
    ]
    resource: Annotated[str, Meta(description="acquire, release: what it is about, such as a path")] = ""
    task: Annotated[str, Meta(description="your own task, or nothing")] = ""
    role: Annotated[str, Meta(description="your own role, or nothing")] = ""
    session_id: Annotated[str, Meta(description="your own session, or nothing")] = ""


class TaskCheckpoint(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    operation: Annotated[
        Literal["save", "restore", "list"],
        _one_of(
            "save: keep what you would need to go on after an interruption; restore: what you saved last; "
            "list: which checkpoints there are"
        ),
    ]
    data: Annotated[dict[str, object], Meta(description="save: what to keep")] = {}
    task: Annotated[str, Meta(description="list: only of this task; otherwise your own task, or nothing")] = ""
    session_id: Annotated[str, Meta(description="your own session, or nothing")] = ""


class ReportResult(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    result: Annotated[dict[str, object], Meta(description="the JSON object that the task asks for")]


ToolArguments = TeamMsg | Board | ResourceLock | TaskCheckpoint | ReportResult


TOOLS: tuple[Tool[ToolArguments], ...] = (
    Tool(name="team_msg", description="Send and read the messages of the team.", arguments=TeamMsg),
    Tool(name="board", description="Read and extend the discoveries of the team.", arguments=Board),
    Tool(name="lock", description="Keep others from a resource while your task uses it.", arguments=ResourceLock),
    Tool(
        name="checkpoint",
        description="Keep what your task would need to go on, and get it back in a later attempt.",
        arguments=TaskCheckpoint,
    ),
    Tool(
        name="report_result",
        description="Hand in the result of your task. It is checked at once; if it is rejected, fix it and try again.",
        arguments=ReportResult,
    ),
)
