"""Who may use the page: the token that iterdev printed, and the cookies that it was exchanged for."""

import hashlib
import hmac
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

COOKIE_BYTES = 32
MOST_COOKIES = 64
"""Browsers that are logged in at once; the one that logged in first is forgotten."""
MOST_WRONG, LOCKED_SECONDS = 10, 60.0
"""Wrong tokens in a row, after which tokens are refused for a time."""
MOST_STREAMS = 8
"""Streams of one browser."""
SHOWN = 12
"""Characters of a digest that the log of acts names a browser by."""


class Locked(Exception):
    """There were too many wrong tokens."""


class TooManyStreams(Exception):
    """A browser has opened more streams than a person would."""


class Credentials:
    """A cookie is another random value than the token, and only its digest is kept."""

    def __init__(self, token: str, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._token, self._monotonic = _digest(token), monotonic
        self._cookies: dict[str, None] = {}
        self._streams: Counter[str] = Counter()
        self._wrong, self._locked_until = 0, float("-inf")

    def log_in(self, token: str) -> str | None:
        """A new cookie for the right token; None for a wrong one."""
        if not self.is_token(token):
            return None
        cookie = secrets.token_urlsafe(COOKIE_BYTES)
        self._cookies[_digest(cookie)] = None
        for oldest in list(self._cookies)[:-MOST_COOKIES]:
            del self._cookies[oldest]
        return cookie

    def is_token(self, token: str) -> bool:
        """Whether it is the token; raises `Locked` after too many wrong ones."""
        if self._monotonic() < self._locked_until:
            raise Locked
        if hmac.compare_digest(_digest(token), self._token):
            self._wrong = 0
            return True
        self._wrong += 1
        if self._wrong >= MOST_WRONG:
            self._wrong, self._locked_until = 0, self._monotonic() + LOCKED_SECONDS
        return False

    def browser_of(self, cookie: str) -> str | None:
        """The name of a browser that is logged in."""
        digest = _digest(cookie)
        return digest[:SHOWN] if digest in self._cookies else None

    @contextmanager
    def stream_of(self, browser: str) -> Iterator[None]:
        """Counts a stream of a browser for as long as it is open."""
        if self._streams[browser] >= MOST_STREAMS:
            raise TooManyStreams
        self._streams[browser] += 1
        try:
            yield
        finally:
            self._streams[browser] -= 1


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
