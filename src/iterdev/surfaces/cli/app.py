"""The commands and their options, as a table. What a command does is in the module that it names."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path

import click

from iterdev import __version__

ALIASES = {"check": "status", "continue": "resume"}


class Commands(click.Group):
    """A group that knows second names, and suggests the nearest one for a misspelt command."""

    second_names: Mapping[str, str] = {}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, self.second_names.get(cmd_name, cmd_name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            known = [*self.list_commands(ctx), *self.second_names]
            near = difflib.get_close_matches(args[0], known, 1)
            suggestion = f' (did you mean "{near[0]}"?)' if near else ""
            ctx.fail(f'there is no command "{args[0]}"{suggestion}; commands: {", ".join(sorted(known))}')
        return super().resolve_command(ctx, args)


class App(Commands):
    second_names = ALIASES


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, message="iterdev %(version)s")
def app() -> None:
    """Run a team of coding agents on a git repository.

    Start with `iterdev demo`, or in your repository with `iterdev run "Add a greeting"`.
    """


def _sessions(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Completes session ids; outside of a repository there are none."""
    from iterdev.core.errors import IterdevError
    from iterdev.engine.repository import Repository

    try:
        return [name for name in Repository(Path.cwd()).sessions() if name.startswith(incomplete)]
    except IterdevError:
        return []


def _known_agents(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    from iterdev.core.settings import KNOWN_AGENTS

    return [name for name in KNOWN_AGENTS if name.startswith(incomplete)]


def _does(target: str) -> Callable[..., object]:
    """A callback that loads its module only when the command is called."""
    module, _, function = target.partition(".")

    def call(**options: object) -> object:
        return getattr(import_module(f"iterdev.surfaces.cli.commands.{module}"), function)(**options)

    return call


def _command(
    name: str, target: str, text: str, parameters: Sequence[click.Parameter] = (), group: click.Group = app
) -> None:
    group.add_command(click.Command(name, params=list(parameters), help=text, callback=_does(target)))


def _group(name: str, text: str, target: str = "", parameters: Sequence[click.Parameter] = ()) -> Commands:
    """A group of commands; with a target it does something by itself when none of them is named."""

    def call(**options: object) -> object:
        alone = click.get_current_context().invoked_subcommand is None
        return _does(target)(**options) if alone else None

    group = Commands(
        name,
        params=list(parameters),
        help=text,
        callback=call if target else None,
        invoke_without_command=bool(target),
    )
    app.add_command(group)
    return group


def _flag(*names: str, text: str) -> click.Option:
    return click.Option(names, is_flag=True, help=text)


ANY_SESSION = click.Argument(["session"], required=False, shell_complete=_sessions)
SESSION = click.Argument(["session"], shell_complete=_sessions)
YES = _flag("-y", "--yes", text="Ask nothing, use the defaults")
AS_JSON = _flag("--json", "as_json", text="Print one JSON document and nothing else")
SESSION_ID = click.Option(["--session-id"], required=True, metavar="ID", shell_complete=_sessions, help="The session")
MAYBE_ID = click.Option(["--session-id"], metavar="ID", shell_complete=_sessions, help="The session  [default: newest]")
NOT_MINE = click.Option(["--session-id"], metavar="ID", shell_complete=_sessions, help="The session; not in an attempt")
PIPELINES = click.Choice(["patch", "sprint", "multi-sprint"])
SEVERITIES = click.Choice(["low", "medium", "high", "critical"])

_command(
    "run",
    "run.run",
    "Run one session of the development team on TEXT",
    [
        click.Argument(["text"], nargs=-1),
        YES,
        click.Option(["-c", "--concurrency"], type=int, metavar="N", help="The most agents at once  [default: 3]"),
        click.Option(["--pipeline"], type=PIPELINES, help="Choose the pipeline yourself"),
        click.Option(["--files"], type=int, metavar="N", help="About how many files the change will touch"),
        click.Option(
            ["--engine"],
            type=click.Choice(["wave", "beat"]),
            default="wave",
            help="wave (default): one depth after another; beat: whatever is ready",
        ),
        click.Option(["--agent"], metavar="NAME", help="The agent for every role"),
        click.Option(["--role-agent"], multiple=True, metavar="ROLE=NAME", help="The agent for one role; repeatable"),
        click.Option(["--role"], metavar="NAME", help="Be one worker, and do its next task; TEXT may be a session"),
        click.Option(["--team"], metavar="NAME", default="iterdev", help="The name of the team  [default: iterdev]"),
        _flag("--analyze", text="Ask an agent which pipeline fits, instead of judging by the text"),
        click.Option(["--tasks"], type=click.Path(path_type=Path), metavar="FILE.csv", help="Run a table made by hand"),
        _flag("--continue", "continue_", text="Go on with a session; TEXT may be its id"),
        _flag("--resume", "resume_", text="The same; of several unfinished sessions you choose one"),
        AS_JSON,
    ],
)
_command(
    "resume",
    "run.resume",
    "Go on with a paused or interrupted session (also: continue)",
    [ANY_SESSION, YES, _flag("--step", text="One step, then stop"), AS_JSON],
)
_command("retry", "run.retry", "Run the failed tasks of a session again", [ANY_SESSION, YES, AS_JSON])
_command(
    "status",
    "status.status",
    "Show what is done, running and waiting, and on what (also: check)",
    [ANY_SESSION, AS_JSON],
)
_command("sessions", "sessions.sessions", "List every session of this repository", [AS_JSON])
_command("why", "why.why", "Show exactly what a task waits for", [SESSION, click.Argument(["task"])])
_command("report", "report.report", "Print the report of a session", [ANY_SESSION])
_command(
    "answer",
    "answer.answer",
    "Answer an open question of a session",
    [SESSION, click.Argument(["gate"]), click.Argument(["choice"])],
)
_command(
    "replay",
    "replay.replay",
    "Decide a session's journal again, and report the first difference",
    [SESSION, AS_JSON],
)
_command("accept", "accept.accept", "Bring a session's branch into your branch", [ANY_SESSION])
_command(
    "rollback",
    "rollback.rollback",
    "Go back to the state before a task landed, or before a wave (wave-N)",
    [
        SESSION,
        click.Argument(["task"]),
        click.Option(["--reason"], default="the user wants it", metavar="TEXT", help="Why, for everybody to read"),
    ],
)
_command(
    "team",
    "team.team",
    "Use the messages and discoveries of a session; in an attempt, in the name of its task",
    [
        click.Argument(
            ["operation"],
            type=click.Choice(
                [
                    *("log", "broadcast", "list", "read", "status", "get-state", "delete", "clear"),
                    *("board-read", "board-add", "report-result"),
                ]
            ),
        ),
        NOT_MINE,
        click.Option(["--from", "sender"], metavar="ROLE", help="The sender, or whose messages to list"),
        click.Option(["--to"], metavar="ROLE", help="The recipient  [default: coordinator]"),
        click.Option(["--type", "kind"], metavar="TYPE", help="The type of the message or discovery"),
        click.Option(["--summary"], metavar="TEXT", help="The message in one sentence"),
        click.Option(["--data"], metavar="JSON", help="More, as a JSON object; - reads it from standard input"),
        click.Option(["--last"], type=click.IntRange(1, 100), metavar="N", help="How many to list  [default: 20]"),
        click.Option(["--id", "message"], metavar="MSG", help="The message to read or delete, such as MSG-007"),
        click.Option(["--role"], metavar="ROLE", help="Whose shared state to get"),
        AS_JSON,
    ],
)

LOCK = _group("lock", "Keep others from a resource while a task uses it; in an attempt, in the name of its task")
OWNER = click.Option(["--task"], metavar="TASK", help="The task, such as DEV-001; not in an attempt")
HOLDER = [
    NOT_MINE,
    click.Option(["--resource"], required=True, metavar="NAME", help="What is locked, such as a path"),
    OWNER,
    click.Option(["--role"], metavar="ROLE", help="The role of the task; not in an attempt"),
    AS_JSON,
]
_command(
    "acquire",
    "lock.acquire",
    "Lock a resource for a task, or renew its lock; exits with 1 and names the holder when it is refused",
    HOLDER,
    LOCK,
)
_command(
    "release",
    "lock.release",
    "Release the lock of a task; nothing happens if the task does not hold it",
    HOLDER,
    LOCK,
)
_command("list", "lock.locks", "Show who holds what, and who waits for it", [NOT_MINE, AS_JSON], LOCK)

CHECKPOINT = _group("checkpoint", "Keep what a task would need to go on; in an attempt, in the name of its task")
_command(
    "save",
    "checkpoint.save",
    "Save a checkpoint of a task; the 5 newest are kept",
    [
        NOT_MINE,
        OWNER,
        click.Option(["--data"], default="{}", metavar="JSON", help="What to keep; - reads it from standard input"),
        AS_JSON,
    ],
    CHECKPOINT,
)
_command(
    "restore",
    "checkpoint.restore",
    "Print the data of a task's newest checkpoint; exits with 1 and the reason when there is none",
    [NOT_MINE, OWNER, AS_JSON],
    CHECKPOINT,
)
_command(
    "list",
    "checkpoint.checkpoints",
    "List the checkpoints, the newest first",
    [NOT_MINE, click.Option(["--task"], metavar="TASK", help="Those of one task"), AS_JSON],
    CHECKPOINT,
)

FEEDBACK = _group("feedback", "Tell the team what you think of its work")
_command(
    "add",
    "feedback.add",
    "Add feedback; high and critical severity reaches every later task",
    [
        click.Argument(["text"], nargs=-1),
        SESSION_ID,
        click.Option(["--severity"], type=SEVERITIES, default="medium", help="How much it matters  [default: medium]"),
        click.Option(
            ["--category"],
            type=click.Choice(["general", "ux", "performance", "bug", "feature"]),
            default="general",
            help="What it is about  [default: general]",
        ),
        AS_JSON,
    ],
    FEEDBACK,
)
_command("list", "feedback.items", "List the feedback, the newest first", [MAYBE_ID, AS_JSON], FEEDBACK)
ANY_ID = click.Option(["--session-id"], metavar="ID", shell_complete=_sessions, help="The session  [default: found]")
FEEDBACK_ID = click.Argument(["feedback"], metavar="FB")
_command(
    "link",
    "feedback.link",
    "Link feedback to a task, and mark it as reviewed",
    [FEEDBACK_ID, click.Argument(["task"]), ANY_ID],
    FEEDBACK,
)
_command("close", "feedback.close", "Close feedback that needs nothing more", [FEEDBACK_ID, ANY_ID], FEEDBACK)

DEBT = _group("debt", "Keep account of shortcuts that will have to be paid for")
_command(
    "add",
    "debt.add",
    "Note a technical debt",
    [
        click.Argument(["text"], nargs=-1),
        SESSION_ID,
        click.Option(["--severity"], type=SEVERITIES, default="medium", help="How much it hurts  [default: medium]"),
        click.Option(
            ["--category"],
            type=click.Choice(["code", "design", "test", "documentation"]),
            default="code",
            help="Where it is  [default: code]",
        ),
        click.Option(
            ["--priority"],
            type=click.Choice(["low", "medium", "high"]),
            default="medium",
            help="How soon to pay it back  [default: medium]",
        ),
        click.Option(["--effort"], type=click.Choice(["small", "medium", "large"]), help="What paying it back takes"),
        click.Option(["--owner"], metavar="NAME", help="Who looks after it"),
        click.Option(["--plan"], metavar="TEXT", help="How it will be paid back"),
        click.Option(["--task"], metavar="TASK", help="The task that it comes from"),
        click.Option(["--file", "files"], multiple=True, metavar="PATH", help="A file that it concerns; repeatable"),
        AS_JSON,
    ],
    DEBT,
)
_command("list", "debt.items", "List the debt, the newest first", [SESSION_ID, AS_JSON], DEBT)
_command("report", "debt.report", "Count the debt, and show what to pay back first", [SESSION_ID, AS_JSON], DEBT)
_command(
    "resolve",
    "debt.resolve",
    "Mark a debt as resolved",
    [
        click.Argument(["debt"], metavar="TD"),
        SESSION_ID,
        click.Option(
            ["--status"],
            type=click.Choice(["open", "in_progress", "resolved", "deferred"]),
            default="resolved",
            help="Another status  [default: resolved]",
        ),
    ],
    DEBT,
)
_command("archive", "archive.archive", "Put a finished session away; its branch and its files stay", [SESSION])
_command(
    "export",
    "archive.export",
    "Copy what a finished session made to the folder PATH, then archive it",
    [SESSION, click.Argument(["path"], type=click.Path(path_type=Path))],
)
_command("reopen", "archive.reopen", "Take up an archived session again", [SESSION])
WISDOM = _group("wisdom", "Show what the sessions of this repository learned, and reject what is wrong")
_command("list", "wisdom.listing", "List what was learned, with its evidence", [AS_JSON], WISDOM)
_command(
    "reject",
    "wisdom.reject",
    "Take an entry out of use, now and in later sessions",
    [click.Argument(["entry"], metavar="ID"), click.Argument(["reason"], nargs=-1)],
    WISDOM,
)
AGENTS = _group("agents", "List the coding agents, and whether they can be used", "agents.agents", [AS_JSON])
_command(
    "check",
    "agents_check.check",
    "Try the installed agents, or only NAME, without a key",
    [click.Argument(["name"], required=False, shell_complete=_known_agents), AS_JSON],
    AGENTS,
)
_command("doctor", "doctor.doctor", "Check the machine, the repository and the state, and say how to mend them")
_command("demo", "demo.demo", "Run a whole sprint on a bundled sample, with no model and no key")
_command(
    "completion",
    "completion.completion",
    'Print the completion script of a shell; for bash: eval "$(iterdev completion bash)"',
    [click.Argument(["shell"], type=click.Choice(["bash", "zsh", "fish"]))],
)
