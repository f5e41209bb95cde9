"""iterdev help."""

import click

from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either


@click.command(help="Print the help of a command; without a name, list the commands")
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@arguments.as_json
@click.pass_context
def help(context: click.Context, *, words: tuple[str, ...], as_json: bool) -> None:  # noqa: A001 - named as it is typed
    shown = context.find_root()
    for word in words:
        if not isinstance(shown.command, click.Group):
            raise click.UsageError(f'"{shown.command_path}" has no command "{word}"', context)
        name, command, _ = shown.command.resolve_command(shown, [word])
        if command is not None:
            shown = click.Context(command, info_name=name, parent=shown)
    text = shown.get_help()
    print_either(text, {"command": shown.command_path, "help": text}, as_json=as_json)
