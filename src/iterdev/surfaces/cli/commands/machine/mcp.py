"""iterdev mcp."""

from functools import partial

import click

from iterdev.surfaces.cli import event_loop


@click.command(help="Run an MCP server for your own clients, on standard input and output")
@click.option("--no-prompts", is_flag=True, help="Offer no prompts: with the skills, clients would show commands twice")
def mcp(*, no_prompts: bool) -> None:
    from iterdev.surfaces.mcp.server import serve  # noqa: PLC0415 - it loads all that can be done

    event_loop.run(partial(serve, with_prompts=not no_prompts))
