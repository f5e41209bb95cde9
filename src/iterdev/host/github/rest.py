"""GitHub through its REST API with a token; lists are read page by page."""

import json
import re
import ssl
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.message import Message
from http.client import HTTPException, HTTPMessage
from pathlib import Path
from typing import IO, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import msgspec
from msgspec import Struct

from iterdev import __version__
from iterdev.core.errors import HostError, UserError
from iterdev.core.ids import moment
from iterdev.host import clock
from iterdev.host.github.contract import IssueFilter, NoSuchIssue, OpenPullRequest, PullRequest, Review
from iterdev.host.github.project import PUBLIC_HOST, Project, project_of
from iterdev.tracker.remote_issues import RemoteComment, RemoteIssue

SECONDS = 30.0
PAGE = 100
"""As many as GitHub gives at once."""
MOST_BYTES = 32 * 2**20
"""Of one answer."""
PUBLIC_API = "https://api.github.com"
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_NEXT = re.compile(r'<([^>]+)>\s*;[^,]*\brel="?next"?')
T = TypeVar("T")


class _User(Struct, frozen=True):
    login: str = ""


class _Comment(Struct, frozen=True):
    body: str | None = None
    user: _User | None = None


class _Label(Struct, frozen=True):
    name: str = ""


class _Issue(Struct, frozen=True):
    number: int
    title: str
    body: str | None = None
    state: str = "open"
    labels: tuple[_Label | str, ...] = ()
    html_url: str = ""
    comments: int = 0
    pull_request: object = None

    def value(self, comments: Sequence[_Comment]) -> RemoteIssue:
        return RemoteIssue(
            number=self.number,
            title=self.title,
            body=self.body or "",
            is_open=self.state == "open",
            labels=tuple(label if isinstance(label, str) else label.name for label in self.labels),
            url=self.html_url,
            comments=tuple(RemoteComment(one.user.login if one.user else "", one.body or "") for one in comments),
        )


class _PullRequest(Struct, frozen=True):
    html_url: str
    body: str | None = None


class _Review(Struct, frozen=True):
    body: str | None = None


class _SameHost(HTTPRedirectHandler):
    """Follows a repository that was renamed, and never takes the token to another host."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        if _origin(newurl) != _origin(req.full_url):
            raise HostError(f'GitHub leads to another host, "{newurl}"', hint="check the remote of the repository")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class RestApi:
    def __init__(self, api: str, project: Project, token: str) -> None:
        where = urlsplit(api)
        if where.scheme != "https" and where.hostname not in LOOPBACK:
            raise UserError(f'"{api}" is not encrypted, and would get your token', hint="GITHUB_API_URL=https://...")
        self._base = f"{api.rstrip('/')}/repos/{quote(project.owner)}/{quote(project.name)}"
        self._project, self._token = project, token
        self._opener = build_opener(_SameHost)

    @classmethod
    def of_checkout(cls, top: Path, token: str, environment: Mapping[str, str]) -> "RestApi":
        project = project_of(top, environment)
        public = PUBLIC_API if project.host == PUBLIC_HOST else f"https://{project.host}/api/v3"
        return cls(environment.get("GITHUB_API_URL") or public, project, token)

    def issues(self, wanted: IssueFilter) -> Sequence[RemoteIssue]:
        found: list[RemoteIssue] = []
        labels = {"labels": ",".join(wanted.labels)} if wanted.labels else {}
        asked = urlencode({"state": wanted.state, "per_page": PAGE, "sort": "created", "direction": "desc", **labels})
        for page in self._pages(f"{self._base}/issues?{asked}", list[_Issue]):
            for one in page:
                if one.pull_request is None and len(found) < wanted.limit:
                    found.append(self._with_comments(one))
            if len(found) >= wanted.limit:
                break
        return found

    def issue(self, number: int) -> RemoteIssue:
        try:
            found = next(self._pages(f"{self._base}/issues/{number}", _Issue))
        except _NotFound as error:
            raise NoSuchIssue(f"There is no issue {number} in {self._named}", hint="iterdev issue pull") from error
        if found.pull_request is not None:
            raise NoSuchIssue(f"{number} is a pull request of {self._named}", hint="name an issue")
        return self._with_comments(found)

    def open_pull_request(self, wanted: PullRequest) -> OpenPullRequest:
        fields = {"title": wanted.title, "head": wanted.head, "base": wanted.base, "body": wanted.body}
        document = json.dumps({**fields, "draft": wanted.is_draft}).encode()
        try:
            made = _decoded(self._request(f"{self._base}/pulls", document)[0], _PullRequest)
        except _Unprocessable as error:
            head = wanted.head if ":" in wanted.head else f"{self._project.owner}:{wanted.head}"
            asked = urlencode({"head": head, "state": "open"})
            known = next(self._pages(f"{self._base}/pulls?{asked}", list[_PullRequest]))
            if not known:
                raise HostError(error.message, hint=f'check that "{wanted.base}" is a branch there') from error
            return OpenPullRequest(url=known[0].html_url, is_new=False, body=known[0].body or "")
        return OpenPullRequest(url=made.html_url, is_new=True, body=wanted.body)

    def change_text(self, number: int, body: str) -> None:
        self._request(f"{self._base}/pulls/{number}", json.dumps({"body": body}).encode(), "PATCH")

    def reviews(self, number: int) -> Sequence[str]:
        pages = self._pages(f"{self._base}/pulls/{number}/reviews?per_page={PAGE}", list[_Review])
        return [one.body or "" for page in pages for one in page]

    def add_review(self, number: int, review: Review) -> None:
        self._request(f"{self._base}/pulls/{number}/reviews", json.dumps(review.document).encode())

    @property
    def _named(self) -> str:
        return f'"{self._project.owner}/{self._project.name}"'

    def _with_comments(self, one: _Issue) -> RemoteIssue:
        address = f"{self._base}/issues/{one.number}/comments?per_page={PAGE}"
        comments = (
            [comment for page in self._pages(address, list[_Comment]) for comment in page] if one.comments else []
        )
        return one.value(comments)

    def _pages(self, address: str, kind: type[T]) -> Iterator[T]:
        following = address
        while following:
            document, link = self._request(following)
            yield _decoded(document, kind)
            found = _NEXT.search(link)
            following = found[1] if found else ""
            if following and _origin(following) != _origin(address):
                raise HostError(f'GitHub leads to another host, "{following}"', hint="check GITHUB_API_URL")

    def _request(self, address: str, document: bytes | None = None, method: str | None = None) -> tuple[bytes, str]:
        """The answer, and what its header says of further pages; a document is posted."""
        headers = self._headers() | ({"Content-Type": "application/json"} if document else {})
        request = Request(address, document, headers=headers, method=method)  # noqa: S310 - https, or this machine
        try:
            with self._opener.open(request, timeout=SECONDS) as response:
                body = response.read(MOST_BYTES + 1)
                link = response.headers.get("Link", "")
        except HTTPError as error:
            with error:
                raise self._failure(error) from error
        except (URLError, ssl.SSLError, TimeoutError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            raise HostError(f'No answer from "{address}": {reason}', hint="check the network") from error
        if len(body) > MOST_BYTES:
            raise HostError(f'"{address}" answers with more than {MOST_BYTES} bytes', hint="use --limit or --labels")
        return body, link

    def _headers(self) -> dict[str, str]:
        return {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token}",
            "User-Agent": f"iterdev/{__version__}",
            "X-GitHub-Api-Version": "2022-11-28",
        }

    def _failure(self, error: HTTPError) -> HostError:
        if until := _limited_until(error.headers) if error.code in {403, 429} else None:
            return HostError(f"GitHub's rate limit is used up until {until}", hint="try again then")
        match error.code:
            case 401:
                return HostError("GitHub does not accept the token", hint="set GITHUB_TOKEN to a valid one")
            case 404 | 410:
                hint = "check the remote, and that the token may read issues"
                return _NotFound(f"GitHub knows no {self._named}, or the token may not read it", hint=hint)
            case 422:
                return _Unprocessable(f"GitHub refuses it{_said(error)}")
            case _:
                return HostError(
                    f"GitHub answered with {error.code} {error.reason}{_said(error)}", hint="try again later"
                )


class _NotFound(HostError):
    """GitHub answered with 404."""


class _Unprocessable(HostError):
    """GitHub answered with 422."""


def _decoded(document: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(document, type=kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise HostError(f"GitHub gave an unexpected answer: {error}", hint="try again later") from error


def _origin(address: str) -> tuple[str, str]:
    place = urlsplit(address)
    return place.scheme, place.netloc


def _limited_until(headers: Message) -> str | None:
    """When requests are accepted again; None if the answer is not about a rate limit."""
    wait, reset = headers.get("Retry-After", ""), headers.get("X-RateLimit-Reset", "")
    if wait.isdecimal():
        return moment(clock.now() + int(wait), clock.LOCAL)
    if headers.get("X-RateLimit-Remaining") == "0" and reset.isdecimal():
        return moment(datetime.fromtimestamp(int(reset), UTC).timestamp(), clock.LOCAL)
    return None


def _said(error: HTTPError) -> str:
    """What the answer says of the error."""
    try:
        document = json.loads(error.read(65_536))
    except (ValueError, OSError, RecursionError):
        return ""
    match document:
        case {"message": str(message), "errors": [{"message": str(detail)}, *_]}:
            return f": {message}: {detail}"
        case {"message": str(message)}:
            return f": {message}"
        case _:
            return ""
