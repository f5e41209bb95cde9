"""What a view makes: a page of parts, each a template with its values. The stream sends the parts that changed."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from http import HTTPStatus
from typing import NoReturn

from msgspec import Struct

from iterdev.app.live.watch import RepositoryWatch, SessionWatch
from iterdev.app.sessions import Repository
from iterdev.core.errors import IterdevError
from iterdev.core.types import SessionId
from iterdev.surfaces.web.watching import Watching


class NoSuchPage(Exception):
    """There is nothing at the address."""


class Part(Struct, frozen=True, kw_only=True):
    name: str
    """Unique on its page; the element has the id `part-NAME`."""
    template: str
    values: Mapping[str, object]
    grows: bool = False
    """A log: what is new is added at its end, and the rest is not sent again."""
    heading: str = ""
    """Above a log that is one of several."""
    link: str = ""
    """Where the heading leads."""


class Page(Struct, frozen=True, kw_only=True):
    title: str
    parts: tuple[Part, ...]
    session: SessionId | None = None
    seq: int | None = None
    """The last entry of the journal that the page shows; all of its parts show the same."""
    place: str = ""
    """Which entry of the navigation it belongs to."""
    status: HTTPStatus = HTTPStatus.OK
    is_live: bool = True
    """Whether the page changes by itself. A preview does not: what is confirmed is what was read."""
    changes_with: Callable[[], object] | None = None
    """What changes beside the journal, as a value that is quick to get, such as the size of a log."""


class PageRequest(Struct, frozen=True, kw_only=True):
    watching: Watching
    path: str
    """The address of the page, with its query."""
    arguments: Mapping[str, str]
    """What the address names, such as the session."""
    query: Mapping[str, str]
    may_act: bool = True
    """False on a page that is for reading only."""

    def sessions(self) -> AbstractContextManager[RepositoryWatch]:
        return self.watching.sessions()

    def session(self) -> AbstractContextManager[SessionWatch]:
        """The session that the address names."""
        name = self.arguments["session"]
        if name not in self.watching.names():
            raise NoSuchPage(f'There is no session "{name}"')
        return self.watching.session(SessionId(name))

    def repository(self) -> AbstractContextManager[Repository]:
        """A repository of its own, for what takes longer than reading the journal."""
        return self.watching.repository()

    def number(self, name: str, otherwise: int, most: int = 1_000_000_000) -> int:
        """A number of the query."""
        text = self.query.get(name, "")
        if not text:
            return otherwise
        if not text.isascii() or not text.isdecimal() or len(text) > len(str(most)) or int(text) > most:
            self.missing(f'"{text}" is not a number')
        return int(text)

    def missing(self, why: str) -> NoReturn:
        raise NoSuchPage(why)


class File(Struct, frozen=True, kw_only=True):
    """A text to download; a browser shows none of it."""

    name: str
    text: str


MakeFile = Callable[[PageRequest], File]
MakePage = Callable[[PageRequest], Page]


class ActRequest(Struct, frozen=True, kw_only=True):
    """What a form of a page asks for."""

    watching: Watching
    arguments: Mapping[str, str]
    fields: Mapping[str, str]
    """The fields of the form."""

    @property
    def session(self) -> SessionId:
        name = self.arguments["session"]
        if name not in self.watching.names():
            raise NoSuchPage(f'There is no session "{name}"')
        return SessionId(name)

    def repository(self) -> AbstractContextManager[Repository]:
        return self.watching.fresh_repository()


class Done(Struct, frozen=True, kw_only=True):
    """What was done, and the page to show next."""

    what: str
    """For the log of acts, such as "answer plan: approve"."""
    go_to: str


class Moved(Exception):
    """The session has changed since the form was shown, which has to be shown again."""


class Unfit(Exception):
    """A row of a form is wrong."""

    def __init__(self, error: IterdevError, row: int | None) -> None:
        super().__init__(error.message)
        self.error, self.row = error, row


Act = Callable[[ActRequest], Done]
