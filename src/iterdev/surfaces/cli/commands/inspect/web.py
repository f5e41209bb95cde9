"""iterdev web."""

import webbrowser
from pathlib import Path

import click

from iterdev.app.live.web_server import WebServer, read_token
from iterdev.core.errors import HostError, UserError
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.extras import install_command
from iterdev.surfaces.cli.output.console import print_document, print_text, print_warning


@click.command(help="Show the sessions of this repository in a browser, answer questions and accept work there")
@click.option("--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port  [default: any free one]")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", help="Where to listen  [default: 127.0.0.1]")
@click.option("--name", "names", multiple=True, metavar="NAME", help="Another name of this machine; repeatable")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Read the token from FILE, instead of a new one",
)
@click.option("--read-only", is_flag=True, help="Show sessions, but allow no changes")
@click.option("--allow-writes", is_flag=True, help="With --host: let everyone who has the token change sessions")
@click.option("--no-open", is_flag=True, help="Print the address without opening a browser")
@arguments.as_json
def web(
    *,
    port: int,
    host: str,
    names: tuple[str, ...],
    token_file: Path | None,
    read_only: bool,
    allow_writes: bool,
    no_open: bool,
    as_json: bool,
) -> None:
    try:
        from iterdev.surfaces.web import server  # noqa: PLC0415 - an extra that most commands do not need
    except ModuleNotFoundError as error:
        raise HostError(f'The web page needs the package "{error.name}"', hint=install_command("web")) from error
    is_local = server.is_loopback(host)
    if not is_local and token_file is None:
        raise UserError(
            f'"{host}" can be reached by other machines, and needs --token-file',
            hint=f"openssl rand -hex 32 > token.txt; iterdev web --host {host} --token-file token.txt",
        )
    options = server.Options(
        host=host,
        port=port,
        names=names,
        token=read_token(token_file) if token_file else "",
        read_only=read_only or not (is_local or allow_writes),
    )

    def started(running: WebServer, was_running: bool) -> None:  # noqa: FBT001 - called by the server
        if as_json:
            print_document({"address": running.address, "link": running.link, "pid": running.process.pid})
        else:
            print_text(running.link)
        if was_running:
            print_warning(f"It is already running, in process {running.process.pid}")
        else:
            print_warning("Stop it with Ctrl-C; sessions continue without it")
        if not is_local:
            acts = "only shown" if options.read_only else "shown and changed"
            print_warning(
                f"warning: {host} can be reached by other machines; sessions can be {acts} by everybody with the token"
            )
        if not no_open and not as_json:
            webbrowser.open(running.link)

    server.serve(arguments.current_repository(), options, started)
