"""iterdev completion."""

import click
from click.shell_completion import get_completion_class


@click.command(help='Print the completion script of a shell; for bash: eval "$(iterdev completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, *, shell: str) -> None:
    found = get_completion_class(shell)
    if found is not None:
        click.echo(found(context.find_root().command, {}, "iterdev", "_ITERDEV_COMPLETE").source())
