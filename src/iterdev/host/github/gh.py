"""GitHub through its command `gh`, which has the user's login, follows pages and asks nothing."""

import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from iterdev.core.errors import HostError
from iterdev.host.github.contract import IssueFilter, NoSuchIssue, OpenPullRequest, PullRequest, Review
from iterdev.host.processes import ownership
from iterdev.tracker.remote_issues import RemoteComment, RemoteIssue

SECONDS, SECONDS_OF_LIST = 30, 300
QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
FIELDS = "number,title,body,state,labels,url,comments"
_ADDRESS = re.compile(r"https?://\S+/pull/\d+")
T = TypeVar("T")


class _Author(Struct, frozen=True):
    login: str = ""


class _Comment(Struct, frozen=True):
    body: str = ""
    author: _Author | None = None


class _Label(Struct, frozen=True):
    name: str


class _Issue(Struct, frozen=True):
    number: int
    title: str
    body: str | None = None
    state: str = "OPEN"
    labels: tuple[_Label, ...] = ()
    url: str = ""
    comments: tuple[_Comment, ...] = ()

    def value(self) -> RemoteIssue:
        authors = (one.author.login if one.author else "" for one in self.comments)
        return RemoteIssue(
            number=self.number,
            title=self.title,
            body=self.body or "",
            is_open=self.state.upper() == "OPEN",
            labels=tuple(label.name for label in self.labels),
            url=self.url,
            comments=tuple(RemoteComment(author, one.body) for author, one in zip(authors, self.comments, strict=True)),
        )


class _Text(Struct, frozen=True):
    body: str | None = None


class GhCommand:
    def __init__(self, top: Path, environment: Mapping[str, str]) -> None:
        self._top, self._environment = top, environment

    def issues(self, wanted: IssueFilter) -> Sequence[RemoteIssue]:
        labels = [word for label in wanted.labels for word in ("--label", label)]
        argv = ("issue", "list", "--state", wanted.state, "--limit", str(wanted.limit), *labels, "--json", FIELDS)
        return [one.value() for one in self._answer(argv, list[_Issue], SECONDS_OF_LIST)]

    def issue(self, number: int) -> RemoteIssue:
        return self._answer(("issue", "view", str(number), "--json", FIELDS), _Issue, SECONDS).value()

    def open_pull_request(self, wanted: PullRequest) -> OpenPullRequest:
        options = ("--head", wanted.head, "--base", wanted.base, "--title", wanted.title, "--body-file", "-")
        done = self._run(("pr", "create", *options, *(["--draft"] if wanted.is_draft else [])), wanted.body, SECONDS)
        said = (done.stdout if not done.returncode else done.stderr).decode("utf-8", "replace")
        address = _ADDRESS.search(said)
        if address and not done.returncode:
            return OpenPullRequest(url=address[0], is_new=True, body=wanted.body)
        if address and "already exists" in said:
            known = self._answer(("pr", "view", address[0], "--json", "body"), _Text, SECONDS)
            return OpenPullRequest(url=address[0], is_new=False, body=known.body or "")
        raise _failure("gh pr create", said, done.returncode)

    def change_text(self, number: int, body: str) -> None:
        self._require(("pr", "edit", str(number), "--body-file", "-"), body)

    def reviews(self, number: int) -> Sequence[str]:
        # The pages of a list are joined to nothing that is JSON, so each review is printed by itself.
        argv = ("api", "--paginate", "--jq", ".[] | {body}", f"{_reviews(number)}?per_page=100")
        return [one.body or "" for one in self._answers(argv, _Text, SECONDS_OF_LIST)]

    def add_review(self, number: int, review: Review) -> None:
        document = msgspec.json.encode(review.document).decode()
        self._require(("api", _reviews(number), "--method", "POST", "--input", "-"), document)

    def _require(self, argv: Sequence[str], stdin: str) -> None:
        done = self._run(argv, stdin, SECONDS)
        if done.returncode:
            raise _failure(f"gh {argv[0]} {argv[1]}", done.stderr.decode("utf-8", "replace"), done.returncode)

    def _answer(self, argv: Sequence[str], kind: type[T], seconds: int) -> T:
        return self._decoded(argv, msgspec.json.Decoder(kind).decode, seconds)

    def _answers(self, argv: Sequence[str], kind: type[T], seconds: int) -> Sequence[T]:
        """One value per line."""
        return self._decoded(argv, msgspec.json.Decoder(kind).decode_lines, seconds)

    def _decoded(self, argv: Sequence[str], decode: Callable[[bytes], T], seconds: int) -> T:
        shown = f"gh {argv[0]} {argv[1]}"
        done = self._run(argv, "", seconds)
        if done.returncode:
            raise _failure(shown, done.stderr.decode("utf-8", "replace"), done.returncode)
        try:
            return decode(done.stdout)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise HostError(f"`{shown}` gave an unexpected answer: {error}", hint="gh --version") from error

    def _run(self, argv: Sequence[str], stdin: str, seconds: int) -> subprocess.CompletedProcess[bytes]:
        try:
            return ownership.run(
                ["gh", *argv],
                cwd=self._top,
                env={**self._environment, **QUIET},
                stdin=stdin.encode("utf-8", "backslashreplace"),
                seconds=seconds,
            )
        except FileNotFoundError as error:
            raise HostError("`gh` is not installed", hint="install gh, then run `gh auth login`") from error
        except subprocess.TimeoutExpired as error:
            shown = f"gh {argv[0]} {argv[1]}"
            raise HostError(f"`{shown}` did not end within {seconds} s", hint="gh auth status") from error


def _reviews(number: int) -> str:
    """The address, in which gh fills in the repository."""
    return f"repos/{{owner}}/{{repo}}/pulls/{number}/reviews"


def _failure(shown: str, said: str, code: int) -> HostError:
    first = next(iter(said.strip().splitlines()), f"it ended with {code}")
    if re.search(r"could not resolve to an (?:issue|pullrequest)", said, re.IGNORECASE):
        return NoSuchIssue(f"`{shown}` failed: {first}", hint="gh issue list")
    hint = "wait until `gh api rate_limit` allows more" if "rate limit" in said.lower() else "gh auth status"
    return HostError(f"`{shown}` failed: {first}", hint=hint)
