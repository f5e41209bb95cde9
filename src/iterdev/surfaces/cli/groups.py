"""Groups of commands that suggest the nearest name."""

from collections.abc import Mapping, Sequence

import click

from iterdev.core.errors import did_you_mean


class CommandGroup(click.Group):
    aliases: Mapping[str, str] = {}
    """Aliases, and the commands that they stand for."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = [*self.list_commands(ctx), *self.aliases]
        if args[0] not in known and not args[0].startswith("-"):
            commands = ", ".join(sorted(known))
            ctx.fail(f'there is no command "{args[0]}"{did_you_mean(args[0], known)}; commands: {commands}')
        return super().resolve_command(ctx, args)


def is_help(words: Sequence[str]) -> bool:
    """Whether nothing but help is asked for; among other words, `--help` may be a text or the value of an option."""
    return list(words) in (["-h"], ["--help"])
