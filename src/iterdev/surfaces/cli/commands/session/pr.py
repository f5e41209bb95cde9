"""iterdev pr."""

import click

from iterdev.app.branches.pull_request import OpenedPullRequest, open_pull_request
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either
from iterdev.surfaces.cli.output.text import opened_text


@click.command(help="Push a session's branch and open a pull request, with its report as the text")
@arguments.finished_session
@click.option("--draft", is_flag=True, help="Open it as a draft")
@click.option("--base", metavar="BRANCH", default="", help="Where it goes  [default: the branch the session came from]")
@click.option("--dry-run", is_flag=True, help="Show it, and push nothing")
@arguments.as_json
def pr(*, session: arguments.SelectedSession, draft: bool, base: str, dry_run: bool, as_json: bool) -> None:
    opened = open_pull_request(*session, base=base, is_draft=draft, dry_run=dry_run)
    print_either(_text(opened), opened, as_json=as_json)


def _text(opened: OpenedPullRequest) -> str:
    if opened.url is None:
        return f"{opened.branch} into {opened.base}: {opened.title}\n\n{opened.body}"
    return opened_text(opened)
