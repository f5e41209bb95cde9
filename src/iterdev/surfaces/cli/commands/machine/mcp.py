"""iterdev mcp."""

import click

from iterdev.surfaces.cli import event_loop


@click.command(help="Serve people's own MCP clients on standard input and output")
def mcp() -> None:
    from iterdev.surfaces.mcp.server import serve  # noqa: PLC0415 - it loads all that can be done

    event_loop.run(serve)
