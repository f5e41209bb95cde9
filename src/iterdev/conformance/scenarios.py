"""The scenarios: what the model does, what the agent is asked, and what is expected of it."""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from iterdev.agents.contract import TOOLS, Permissions
from iterdev.agents.scripted.script import Call, Fail, Step
from iterdev.conformance import expectations as expect
from iterdev.conformance.model.tool_server import TOOL
from iterdev.core.limits.agent_failures import FailureKind

TURN_TIMEOUT = 90.0
"""Seconds for a turn, on a busy machine."""
SILENT_LIMIT = 30.0
"""Seconds for an attempt in which the model does not respond, including the start of the agent."""
RESET = 40.0
"""Seconds until the limit of the provider is lifted."""
HUGE = 60_000
"""Words of the huge prompt, which is longer than an argument of a program may be."""

PLUM = "Remember the plum."

Course = Literal["one conversation", "resumed", "interrupted"]


class Scenario(Struct, frozen=True, kw_only=True):
    name: str
    claim: str
    """What is expected of the agent and its adapter."""
    steps: tuple[Step, ...]
    expects: tuple[expect.Expectation, ...]
    prompts: tuple[str, ...] = ("Do your task.",)
    permissions: Permissions = Permissions(write=True)
    course: Course = "one conversation"
    """Resumed: each prompt goes to a new process. Interrupted: the second prompt is sent during the first turn."""
    limit: float = 4 * TURN_TIMEOUT
    """Seconds for the attempt."""
    tools: bool = False
    """Whether the agent has the tool server."""

    @property
    def takes_long(self) -> bool:
        """Agents retry, and wait in between."""
        return any(step.hang or step.fail or step.cut for step in self.steps)


def done(findings: str, **more: object) -> Step:
    return Step(result={"id": expect.TASK, "status": "completed", "findings": findings, **more})


WRITE = Step(say="I will write the file.", write={"hello.txt": "hello\n"})
DATA: dict[str, object] = {"name": "till", "where": {"file": "till.py", "lines": [1, 2]}}
BUSY = "echo $$ > busy.pid; sleep 600"
ORPHAN = "setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $! > child.pid"

TWO_TURNS = Scenario(
    name="two turns",
    claim="The second turn knows the first.",
    prompts=(PLUM, "What was it?"),
    steps=(done("first"), done("second")),
    expects=(expect.Answered(("first", "second")), expect.RequestContained(PLUM)),
)
SCENARIOS = (
    Scenario(
        name="write a file",
        claim="A file is written in the workspace, and the turn ends with a result.",
        steps=(WRITE, done("written")),
        expects=(expect.Answered(("written",)), expect.Wrote("hello.txt", "hello\n")),
    ),
    Scenario(
        name="structured answer",
        claim="A nested result arrives as it was sent, and matches the schema of the role.",
        steps=(done("structured", discoveries=[{"type": "pattern", "data": DATA}]),),
        expects=(expect.Answered(("structured",)), expect.Discovered(DATA)),
    ),
    TWO_TURNS,
    replace(TWO_TURNS, name="resumed conversation", claim="A new process resumes the conversation.", course="resumed"),
    Scenario(
        name="tool call over MCP",
        claim="A tool of the team is called over HTTP, with the token of the attempt and without a permission request.",
        tools=True,
        steps=(Step(call=Call(tool=TOOL, server=TOOLS, arguments={"text": "plum"})), done("noted")),
        expects=(expect.Answered(("noted",)), expect.ToolCalled("plum")),
    ),
    Scenario(
        name="denied permission",
        claim="What the role may not do is denied at once and reported, and the turn continues.",
        permissions=Permissions(write=False),
        steps=(WRITE, done("went on")),
        expects=(expect.Answered(("went on",)), expect.NotWritten("hello.txt"), expect.DenialReported()),
    ),
    Scenario(
        name="401",
        claim="A key that the provider rejects is reported as a missing login.",
        steps=(Step(fail=Fail(status=401, message="invalid api key")),),
        expects=(expect.Failed(FailureKind.not_logged_in),),
    ),
    Scenario(
        name="429 with reset",
        claim="A limit is reported as one, with the time at which it is lifted.",
        steps=(Step(fail=Fail(status=429, message="usage limit reached", reset_in=RESET), say="The limit is lifted."),),
        expects=(expect.Failed(FailureKind.limited), expect.ResetReported(RESET)),
    ),
    Scenario(
        name="500",
        claim="A provider that fails is reported as overloaded.",
        steps=(Step(fail=Fail(status=500, message="internal error")),),
        expects=(expect.Failed(FailureKind.overloaded),),
    ),
    Scenario(
        name="dropped stream",
        claim="A response that breaks off is a failure of the provider, not a result.",
        steps=(Step(say="This answer breaks off in the middle.", cut=True),),
        expects=(expect.Failed(FailureKind.overloaded),),
    ),
    Scenario(
        name="silent model",
        claim="A model that does not respond ends the attempt at its time limit.",
        limit=SILENT_LIMIT,
        steps=(Step(hang=True),),
        expects=(expect.Failed(FailureKind.timed_out), expect.RequestContained("Do your task.")),
    ),
    Scenario(
        name="huge prompt",
        claim="A prompt of 300 kB arrives whole.",
        prompts=("plum " * HUGE + "the end",),
        steps=(done("received"),),
        expects=(
            expect.Answered(("received",)),
            expect.RequestContained("plum ", HUGE),
            expect.RequestContained("the end"),
        ),
    ),
    Scenario(
        name="cancel in the middle",
        claim="A turn is interrupted while a command runs, and the next one continues the conversation.",
        course="interrupted",
        prompts=("Do your task.", "Go on. [[scenario:next]]"),
        steps=(Step(run=BUSY), done("not interrupted")),
        expects=(expect.Failed(FailureKind.timed_out), expect.Recovered("went on"), expect.Wrote("busy.pid")),
    ),
    Scenario(
        name="orphaned shell child",
        claim="A process that a command left behind, in its own session, is ended with the conversation.",
        steps=(Step(run=ORPHAN), done("left a child")),
        expects=(expect.Answered(("left a child",)), expect.Wrote("child.pid")),
    ),
)
