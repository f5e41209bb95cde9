"""The tools that people's own clients are given: what each takes, and what it is for."""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from iterdev.mcp.tools import Hints, Tool

LONGEST_WAIT = 3600
"""Seconds. A client whose own limit is shorter has to ask for less; `iterdev skill install` sets the limits higher."""

SessionName = Annotated[
    str, Meta(description="The id of a session, or the beginning of it; empty: the last active one")
]
Line = Annotated[
    str,
    Meta(
        description='Exactly what the user typed after the name, such as: -y -c 4 "Add login". '
        "Without a line, say `text` and the other fields."
    ),
]
Yes = Annotated[bool, Meta(description="Ask the user nothing, use the defaults; only if the user says so")]
Concurrency = Annotated[int, Meta(description="Run at most so many agents at once; 0: as configured", ge=0)]
Preview = Annotated[bool, Meta(description="true: only say what would happen; false: do it, if the user said so")]


class Run(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    line: Line = ""
    text: Annotated[str, Meta(description="What the team should do")] = ""
    yes: Yes = False
    concurrency: Concurrency = 0
    pipeline: Annotated[str, Meta(description="The pipeline; empty: the text decides")] = ""


class Resolve(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    line: Line = ""
    text: Annotated[str, Meta(description="The issues, such as GH-42 or ISS-20260308-120000")] = ""
    yes: Yes = False
    concurrency: Concurrency = 0
    mode: Annotated[str, Meta(description="The pipeline; empty: the issues decide")] = ""


class Sessions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Status(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session: SessionName = ""
    task: Annotated[str, Meta(description="A task, such as DEV-001: exactly what it waits for")] = ""


class Wait(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session: SessionName = ""
    seconds: Annotated[int, Meta(description="Wait at most this long", ge=0, le=LONGEST_WAIT)] = 45


class Answer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    gate: Annotated[str, Meta(description="The id of the question, such as plan")]
    choice: Annotated[str, Meta(description="What the user chose")]
    session: SessionName = ""


class Report(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session: SessionName = ""


class Diff(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session: SessionName = ""
    task: Annotated[str, Meta(description="Only the change of this task")] = ""
    file: Annotated[str, Meta(description="The patch of this file; empty: which files, and how much of each")] = ""


class Accept(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session: SessionName = ""
    preview: Preview = True
    force: Annotated[bool, Meta(description="Accept even if tests fail or the review did not pass")] = False


class Resume(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session: SessionName = ""
    yes: Yes = False


class Retry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    session: SessionName = ""
    preview: Preview = True


class Rollback(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    to: Annotated[str, Meta(description="Back to before this task, such as DEV-002, or before a wave, such as wave-3")]
    session: SessionName = ""
    preview: Preview = True
    reason: Annotated[str, Meta(description="The reason, for the report and the agents")] = "the user wants it"


class Feedback(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(description="What the user thinks of the work")]
    session: SessionName = ""
    severity: Annotated[Literal["critical", "high", "medium", "low"], Meta(description="How much it matters")] = (
        "medium"
    )
    category: Annotated[
        Literal["general", "ux", "performance", "bug", "feature"], Meta(description="What it is about")
    ] = "general"


class Issues(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    issue: Annotated[str, Meta(description="One issue with its solutions; empty: all that are not completed")] = ""
    status: Annotated[str, Meta(description="Only those with one of these statuses, such as planned,queued")] = ""


class CreateIssue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    title: str
    description: Annotated[str, Meta(description="The problem in full")] = ""
    priority: Annotated[int, Meta(description="From 1 to 5, which is the most urgent", ge=1, le=5)] = 3


class UpdateIssue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    issue: str
    title: Annotated[str, Meta(description="Empty, as every other field: it stays as it is")] = ""
    description: str = ""
    priority: Annotated[int, Meta(description="From 1 to 5; 0: it stays as it is", ge=0, le=5)] = 0
    status: str = ""


class Queue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    queue: Annotated[str, Meta(description="A queue; empty: the active one")] = ""
    add: Annotated[tuple[str, ...], Meta(description="Issues whose bound solutions are added to the active queue")] = ()


READS = Hints(read_only_hint=True)
CHANGES = Hints()
STARTS = Hints(open_world_hint=True)
DESTROYS = Hints(destructive_hint=True)

TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="run",
        description="Start a session of the development team on this repository. It works in the background, "
        "and continues when you end. Call it only when the user asks for team-iterdev by name.",
        arguments=Run,
        hints=STARTS,
    ),
    Tool(
        name="resolve",
        description="Start a session of the issue team on the issues that are named. It works in the background, "
        "and continues when you end. Call it only when the user asks for team-issue by name.",
        arguments=Resolve,
        hints=STARTS,
    ),
    Tool(
        name="wait",
        description="Wait until a session asks something or is over, but at most for some seconds. "
        "It says what to do next. Never answer a question yourself.",
        arguments=Wait,
        hints=READS,
    ),
    Tool(name="status", description="What is done, running and waiting, and on what.", arguments=Status, hints=READS),
    Tool(
        name="answer",
        description="Give the user's answer to an open question of a session.",
        arguments=Answer,
        hints=CHANGES,
    ),
    Tool(name="report", description="The report of a session.", arguments=Report, hints=READS),
    Tool(name="diff", description="What a session or one of its tasks changed.", arguments=Diff, hints=READS),
    Tool(
        name="accept",
        description="Merge the work of a finished session into the user's branch. "
        "Only the user decides that; show the preview first.",
        arguments=Accept,
        hints=DESTROYS,
    ),
    Tool(name="sessions", description="Every session of this repository.", arguments=Sessions, hints=READS),
    Tool(
        name="resume",
        description="Continue a paused or interrupted session, in the background.",
        arguments=Resume,
        hints=STARTS,
    ),
    Tool(
        name="retry",
        description="Run the failed tasks of a session again, in the background.",
        arguments=Retry,
        hints=STARTS,
    ),
    Tool(
        name="rollback",
        description="Roll a session back to before a task or a wave. Only the user decides that; preview first.",
        arguments=Rollback,
        hints=DESTROYS,
    ),
    Tool(name="feedback", description="Give the team the user's feedback.", arguments=Feedback, hints=CHANGES),
    Tool(name="issues", description="The issues of the tracker, or one of them.", arguments=Issues, hints=READS),
    Tool(name="create_issue", description="Add an issue to the tracker.", arguments=CreateIssue, hints=CHANGES),
    Tool(name="update_issue", description="Change an issue of the tracker.", arguments=UpdateIssue, hints=CHANGES),
    Tool(name="queue", description="The queue of solutions; issues can be added.", arguments=Queue, hints=CHANGES),
)
READING = frozenset(tool.arguments for tool in TOOLS if tool.hints == READS)
"""What an agent inside of an attempt may use too: it changes nothing."""
