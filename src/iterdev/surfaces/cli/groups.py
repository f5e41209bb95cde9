"""Groups of commands: one that suggests the nearest name, and one that imports a command when it is used."""

import difflib
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module

import click
from click.shell_completion import CompletionItem


class CommandGroup(click.Group):
    """Suggests the nearest name for a misspelt command."""

    aliases: Mapping[str, str] = {}
    """Second names, and the commands that they stand for."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = [*self.list_commands(ctx), *self.aliases]
        if args[0] not in known and not args[0].startswith("-"):
            near = difflib.get_close_matches(args[0], known, 1)
            suggestion = f' (did you mean "{near[0]}"?)' if near else ""
            ctx.fail(f'there is no command "{args[0]}"{suggestion}; commands: {", ".join(sorted(known))}')
        return super().resolve_command(ctx, args)


class LazyGroup(CommandGroup):
    """Imports the module of a command when the command is used; the module and the command have the same name."""

    package = ""
    folders: Mapping[str, Mapping[str, str]] = {}
    """The commands in each folder of the package, and their help in one line, so that listing them imports none."""

    @cached_property
    def short_helps(self) -> Mapping[str, str]:
        return {name: text for commands in self.folders.values() for name, text in commands.items()}

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(self.short_helps)

    def get_command(self, _ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = self.aliases.get(cmd_name, cmd_name)
        for folder, commands in self.folders.items():
            if name in commands:
                command = getattr(import_module(f"{self.package}.{folder}.{name}"), name)
                return command if isinstance(command, click.Command) else None
        return None

    def format_commands(self, _ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for folder, commands in self.folders.items():
            with formatter.section(f"{folder.capitalize()} commands"):
                formatter.write_dl(list(commands.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = (name for name in self.list_commands(ctx) if name.startswith(incomplete))
        items = [CompletionItem(name, help=self.short_helps[name]) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]
