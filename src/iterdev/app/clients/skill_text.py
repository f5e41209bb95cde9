"""The skills `team-iterdev` and `team-issue`: one template for every client, short because it stays in the context."""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.teams.development.team import DEVELOPMENT
from iterdev.teams.issues.team import ISSUES

ALLOWED = ("run", "resolve", "status", "wait", "answer", "report")
"""Tools of the MCP server that a client may be told to call without asking. Never accept or rollback."""


class Skill(Struct, frozen=True, kw_only=True):
    name: str
    tool: str
    """That starts the team, and the command of the same name."""
    what: str
    hint: str
    """The arguments, as a client shows them."""

    @property
    def description(self) -> str:
        return f"{self.what} Only when the user asks for {self.name} by name."


SKILLS = (
    Skill(
        name="team-iterdev",
        tool="run",
        what=f"Runs the iterdev team ({', '.join(DEVELOPMENT.workers)}) on this repository.",
        hint='[-y] [-c N] [--continue] "task description"',
    ),
    Skill(
        name="team-issue",
        tool="resolve",
        what=f"Runs the iterdev issue team ({', '.join(ISSUES.workers)}) on issues.",
        hint='[-y] [--mode M] [--exec AGENT] [--all-pending] "GH-42 ..."',
    ),
)
BY_NAME: Mapping[str, Skill] = {skill.name: skill for skill in SKILLS}

STEPS = """\
1. Call the tool `{tool}` of the MCP server iterdev with `line` set to exactly {typed}.
   Change nothing in it.
2. If the call became a background task, say so in one sentence and stop: questions reach the user by themselves.
3. Otherwise call `wait` of the same server with `seconds` 3600, again and again until the session is over. If it brings
   a question, ask the user with the choices given, and call `answer` with what the user chose. Never choose yourself.
4. At the end, tell the user in a few lines what the report says. Do not edit code, do not run the tests, do not call
   `accept`: only the user decides that.
"""
WITHOUT_SERVER = """\
Without the MCP server, give the same line to this command on its standard input, in a here-document whose
delimiter is quoted, so that no shell interprets it:

```
{program} {tool} --detach --line - <<'ITERDEV_LINE'
(the line)
ITERDEV_LINE
```

It prints the id of the session. Then run `{program} follow ID --until question` in the background. If it ends with exit
code 5, `{program} status ID` shows the question; ask the user, and run `{program} answer ID GATE CHOICE`.
"""


def steps(skill: Skill, typed: str) -> str:
    return STEPS.format(tool=skill.tool, typed=typed)


def body(skill: Skill, program: str, typed: str) -> str:
    """What the client's model is told; `typed` is how the client gives what the user typed after the name."""
    return f"{steps(skill, typed)}\n{WITHOUT_SERVER.format(program=program, tool=skill.tool)}"
