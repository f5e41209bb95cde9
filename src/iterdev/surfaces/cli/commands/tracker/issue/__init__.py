"""iterdev issue. Each of its commands is in the module of its name."""

import os
from importlib import import_module
from pathlib import Path

import click

from iterdev.surfaces.cli.groups import CommandGroup, is_help

COMMANDS = (
    *("create", "init", "list", "status", "solution", "solutions", "bind", "update", "history"),
    *("queue", "next", "done", "retry", "pull"),
)
FOR_PEOPLE = ("init", "bind", "update", "next", "done", "retry", "pull")
"""Commands that an agent may not use in an attempt: iterdev records itself what became of an issue."""


class IssueCommands(CommandGroup):
    def list_commands(self, _ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"{__name__}.{cmd_name}").command
        return command if isinstance(command, click.Command) else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name in FOR_PEOPLE and not is_help(rest):
            from iterdev.app.sessions import refuse_inside_attempt  # noqa: PLC0415 - most commands do not need it

            refuse_inside_attempt(f"issue {name}", os.environ, Path.cwd())
        return name, command, rest


issue = IssueCommands("issue", help="Track issues, their solutions, and the queue in which they are carried out")
