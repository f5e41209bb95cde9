"""iterdev pr."""

import click

from iterdev.app.branches.pull_request import OpenedPullRequest, PullRequestOptions, open_pull_request
from iterdev.surfaces.cli import arguments
from iterdev.surfaces.cli.output.console import print_either
from iterdev.surfaces.cli.output.text import opened_text


@click.command(help="Push a session's branch, and open or update its pull request")
@arguments.finished_session
@click.option("--draft", is_flag=True, help="Open it as a draft")
@click.option(
    "--base", metavar="BRANCH", default="", help="The branch to merge into  [default: where the session came from]"
)
@click.option("--dry-run", is_flag=True, help="Show the pull request without pushing anything")
@click.option("--with-findings", is_flag=True, help="Add the findings of the review as comments, at most 20, once")
@arguments.as_json
def pr(
    *, session: arguments.SelectedSession, draft: bool, base: str, dry_run: bool, with_findings: bool, as_json: bool
) -> None:
    options = PullRequestOptions(is_draft=draft, with_findings=with_findings)
    opened = open_pull_request(*session, base=base, options=options, dry_run=dry_run)
    print_either(_text(opened), opened, as_json=as_json)


def _text(opened: OpenedPullRequest) -> str:
    if opened.url is None:
        comments = [f"{one.severity}: {one.file}:{one.line or ''} {one.text}" for one in opened.findings]
        return "\n\n".join((f"{opened.branch} into {opened.base}: {opened.title}", opened.body, *comments))
    return opened_text(opened)
