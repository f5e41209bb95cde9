"""Messages posted to an address of the web: JSON of ours that can be signed, or that of Slack."""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from functools import partial
from http.client import HTTPException
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import anyio
import msgspec

from iterdev import __version__
from iterdev.core.errors import HostError
from iterdev.core.views.notifications import Notification
from iterdev.host import clock

SECONDS = 5.0


class _NoRedirects(HTTPRedirectHandler):
    """A message goes to the address that is configured, and to no other."""

    def redirect_request(self, *_: object) -> None:
        return None


class WebhookChannel:
    name = "webhook"

    def __init__(self, address: str, secret: str, now: Callable[[], float] = clock.now) -> None:
        self._address, self._secret, self._now = address, secret, now

    async def send(self, notification: Notification) -> None:
        at = self._now()
        body = msgspec.json.encode(notification.document(at))
        # A try that took too long may have arrived: by this the receiver knows one message from the next.
        what = f"{notification.session} {notification.kind} {[*notification.needs, *notification.gone]}"
        delivery = hashlib.sha256(what.encode("utf-8", "backslashreplace")).hexdigest()[:32]
        headers = {"X-Iterdev-Delivery": delivery, "X-Iterdev-Timestamp": f"{at:.0f}"}
        if self._secret:
            headers["X-Iterdev-Signature"] = f"sha256={signature(self._secret, headers['X-Iterdev-Timestamp'], body)}"
        await _post(self._address, body, headers)


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Of the time and the body, so that neither can be replaced."""
    return hmac.new(secret.encode(), f"{timestamp}.".encode() + body, hashlib.sha256).hexdigest()


class SlackChannel:
    name = "slack"

    def __init__(self, address: str) -> None:
        self._address = address

    async def send(self, notification: Notification) -> None:
        text = f"{notification.title}\n{notification.lines}"
        for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
            text = text.replace(sign, entity)
        await _post(self._address, msgspec.json.encode({"text": text}), {})


async def _post(address: str, body: bytes, headers: Mapping[str, str]) -> None:
    known = {"Content-Type": "application/json", "User-Agent": f"iterdev/{__version__}"}
    request = Request(address, body, headers={**known, **headers})  # noqa: S310 - https, or this machine
    # A server that sends byte by byte is left behind by whoever limits the time.
    await anyio.to_thread.run_sync(partial(_open, request), abandon_on_cancel=True)


def _open(request: Request) -> None:
    """The answer is not read, however large it is. The address may be a secret, and is named in no error."""
    host = urlsplit(request.full_url).hostname
    try:
        with build_opener(_NoRedirects).open(request, timeout=SECONDS):
            pass
    except HTTPError as error:
        with error:
            raise HostError(f'"{host}" answered with {error.code} {error.reason}') from None
    except (URLError, HTTPException, OSError, ValueError) as error:
        raise HostError(f'No answer from "{host}": {getattr(error, "reason", error)}') from None
