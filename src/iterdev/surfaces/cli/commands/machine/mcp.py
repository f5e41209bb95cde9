"""iterdev mcp."""

from functools import partial

import click

from iterdev.surfaces.cli import event_loop


@click.command(help="Serve people's own MCP clients on standard input and output")
@click.option(
    "--no-prompts", is_flag=True, help="For a client that has the skills: it would show two commands of a name"
)
def mcp(*, no_prompts: bool) -> None:
    from iterdev.surfaces.mcp.server import serve  # noqa: PLC0415 - it loads all that can be done

    event_loop.run(partial(serve, with_prompts=not no_prompts))
