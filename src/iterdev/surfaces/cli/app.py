"""The command `iterdev`. Each subcommand is in the module of its name in `commands`."""

import gc
import os
import sys
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from types import ModuleType

import click
from click.shell_completion import CompletionItem

from iterdev import __version__
from iterdev.surfaces.cli import line
from iterdev.surfaces.cli.exit_codes import ExitCode
from iterdev.surfaces.cli.groups import CommandGroup, is_help
from iterdev.surfaces.cli.output.console import discard_output

ALIASES = {"check": "status", "continue": "resume"}
FOR_PEOPLE = {
    *("run", "resolve", "resume", "retry", "answer", "accept", "update", "rollback", "archive", "reopen", "export"),
    *("clean", "import", "pr", "watch", "web", "mcp", "feedback add", "feedback link", "feedback close"),
    *("wisdom reject", "skill install", "skill remove", "notify test", "key new", "worker"),
}
"""Commands that an agent may not use in an attempt: they start a team, decide about a session, or speak as the user."""

COMMANDS = {
    "session": {
        "run": "Run one session of the development team on TEXT",
        "resolve": "Run one session of the issue team on the issues that TEXT names",
        "resume": "Continue a paused or interrupted session (also: continue)",
        "retry": "Run the failed tasks of a session again",
        "answer": "Answer an open question of a session",
        "accept": "Merge a session's branch into yours",
        "pr": "Push a session's branch, and open or update its pull request",
        "update": "Merge the branch that a session came from into the session, and test the result",
        "rollback": "Go back to the state before a task landed, or before a wave (wave-N)",
        "archive": "Archive a finished session; its branch and its files stay",
        "reopen": "Reopen an archived session",
        "export": "Copy the results of a finished session to the folder PATH, then archive it",
        "demo": "Run a whole session on a bundled sample, with no model and no key",
    },
    "inspect": {
        "sessions": "List every session of this repository",
        "status": "Show what is done, running and waiting, and on what (also: check)",
        "watch": "Watch sessions in a dashboard: tasks, output, changes; answer, accept, retry, roll back",
        "follow": "Print a line for each notable event of a session, as it happens",
        "web": "Show the sessions of this repository in a browser, answer questions and accept work there",
        "why": "Show exactly what a task is waiting for",
        "diff": "Show the change of a session, of a task or of a fix round, as git diff does",
        "report": "Print the report of a session",
        "logs": "Show what the engine of a session did and what its agents said",
        "replay": "Repeat every decision in a session's journal, and report the first difference",
    },
    "collaboration": {
        "feedback": "Give the team feedback on its work",
        "debt": "Track technical debt",
        "wisdom": "Show what the sessions of this repository learned, and reject what is wrong",
        "team": "Use the messages and discoveries of a session; in an attempt, for its own task",
        "lock": "Lock a resource while a task uses it; in an attempt, for its own task",
        "checkpoint": "Save what a task needs to continue; in an attempt, for its own task",
    },
    "tracker": {
        "issue": "Track issues, their solutions, and the queue in which they are carried out",
        "import": "Import issues or a task table from another tool's FILE",
    },
    "machine": {
        "agents": "List the coding agents, and whether they can be used",
        "doctor": "Check the machine, the repository and its sessions, and say how to fix problems",
        "help": "Print the help of a command; without a name, list the commands",
        "mcp": "Run an MCP server for your own clients, on standard input and output",
        "hosts": "List the hosts that run attempts: agents, busy and all slots, version, last seen",
        "worker": "Serve as a host: run attempts for engines on other machines, as host.toml says",
        "key": "Create the key that seals the messages between this machine and its hosts",
        "skill": "Call the teams from inside your coding agent: /team-iterdev and /team-issue",
        "clean": "Remove branches, refs and worktrees that are not needed, of SESSION or of all",
        "notify": "Test the configured notifications",
        "completion": 'Print the completion script of a shell; for bash: eval "$(iterdev completion bash)"',
    },
}
"""The folders of `commands`, and what `iterdev --help` says of each command without importing it; a test compares."""


class App(CommandGroup):
    """Imports the module of a command when the command is used; the module and the command have the same name."""

    aliases = ALIASES

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(name for commands in COMMANDS.values() for name in commands)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # The reader of a pipe has left, as `| head` does. It is no failure, but click would exit with 1.
            discard_output()
            return ExitCode.finished

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = self.aliases.get(cmd_name, cmd_name)
        for folder, commands in COMMANDS.items():
            if name in commands:
                module = f"{name}_" if iskeyword(name) else name
                command = getattr(_imported(f"iterdev.surfaces.cli.commands.{folder}.{module}"), module)
                return command if isinstance(command, click.Command) else None
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        whole = line.expanded(args, sys.stdin.read) if args[0] in line.STARTERS else args
        name, command, rest = super().resolve_command(ctx, whole)
        if command and (refused := _for_people(str(command.name), rest)):
            from iterdev.app.sessions import refuse_inside_attempt  # noqa: PLC0415 - most commands do not need it

            refuse_inside_attempt(refused, os.environ, Path.cwd())
        return name, command, rest

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for folder, commands in COMMANDS.items():
            with formatter.section(f"{folder.capitalize()} commands"):
                formatter.write_dl(list(commands.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        helps = {name: text for commands in COMMANDS.values() for name, text in commands.items()}
        names = (name for name in sorted(helps) if name.startswith(incomplete))
        items = [CompletionItem(name, help=helps[name]) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]


def _imported(name: str) -> ModuleType:
    """Imports a module that stays until the end.

    The garbage collector does not scan it, neither now nor later, nor when the interpreter shuts down; that would take
    a fifth of the time of a short command.
    """
    gc.disable()
    try:
        return import_module(name)
    finally:
        gc.freeze()
        gc.enable()


def _for_people(name: str, rest: list[str]) -> str:
    """The command that these words use, if it is one for people; empty for the others, and for its help."""
    # `--` before a command of a group ends the options of the group.
    inner = rest[1:] if rest[:1] == ["--"] else rest
    used = ((name, rest), (" ".join([name, *inner[:1]]), inner[1:]))
    return next((called for called, words in used if called in FOR_PEOPLE and not is_help(words)), "")


@click.group(cls=App, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="iterdev %(version)s")
def app() -> None:
    """Run a team of coding agents on a git repository.

    Start with `iterdev demo`, or in your repository with `iterdev run "Add a greeting"`.
    """
