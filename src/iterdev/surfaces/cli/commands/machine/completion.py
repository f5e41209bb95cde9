"""iterdev completion."""

import click
from click.shell_completion import get_completion_class

from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either


@click.command(help='Print the completion script of a shell; for bash: eval "$(iterdev completion bash)"')
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@arguments.as_json
@click.pass_context
def completion(context: click.Context, *, shell: str, as_json: bool) -> None:
    found = get_completion_class(shell)
    if found is not None:
        script = found(context.find_root().command, {}, "iterdev", "_ITERDEV_COMPLETE").source()
        print_either(script, {"shell": shell, "script": script}, as_json=as_json)
