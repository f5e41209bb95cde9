"""Who may ask for what: a table over every route that there is, so that a new one cannot forget a rule."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import closing
from http import HTTPStatus
from pathlib import Path

import pytest
from tests.app.conftest import Sessions
from tests.conftest import Repo
from tests.surfaces.web.conftest import ACTING, BEARER, HOST, ORIGIN, PORT, TOKEN, Site, filled

from iterdev.app.live.web_server import ActLog
from iterdev.surfaces.web.credentials import LOCKED_SECONDS, MOST_STREAMS, MOST_WRONG, Credentials, Locked
from iterdev.surfaces.web.guard import MOST_BODY, MOST_HEADER, SECURITY_HEADERS
from iterdev.surfaces.web.watching import Watching

MISDIRECTED, FORBIDDEN, UNAUTHORIZED = (
    HTTPStatus.MISDIRECTED_REQUEST,
    HTTPStatus.FORBIDDEN,
    HTTPStatus.UNAUTHORIZED,
)
REFUSED = {MISDIRECTED, FORBIDDEN, UNAUTHORIZED, HTTPStatus.REQUEST_ENTITY_TOO_LARGE}
PUBLIC = {("GET", "/"), ("GET", "/static/app.js"), ("POST", "/login")}
CROSS = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}

FOREIGN: Mapping[str, tuple[Mapping[str, str | None], HTTPStatus]] = {
    "a name that was made to mean 127.0.0.1": ({"host": f"evil.example:{PORT}"}, MISDIRECTED),
    "another port": ({"host": "127.0.0.1:1"}, MISDIRECTED),
    "no port": ({"host": "127.0.0.1"}, MISDIRECTED),
    "no name": ({"host": None}, MISDIRECTED),
    "another site": ({"origin": "https://evil.example"}, FORBIDDEN),
    "another port of this machine": ({"origin": "http://127.0.0.1:1"}, FORBIDDEN),
    "a page without an origin": ({"origin": "null"}, FORBIDDEN),
    "https in place of http": ({"origin": f"https://{HOST}"}, FORBIDDEN),
    "a request across sites": (CROSS, FORBIDDEN),
    "a request of the same site, from another port": ({"sec-fetch-site": "same-site"}, FORBIDDEN),
}


def every_route(site: Site) -> Iterator[tuple[str, str]]:
    return ((method, filled(path)) for method, path in site.routes())


def good(method: str) -> dict[str, str]:
    """What this page itself sends."""
    return {**BEARER, "sec-fetch-site": "same-origin", **(ACTING if method != "GET" else {})}


@pytest.mark.parametrize("case", FOREIGN)
def test_no_route_answers_a_request_that_does_not_come_from_this_page(site: Site, case: str) -> None:
    headers, status = FOREIGN[case]

    answers = {
        (method, path): site.request(method, path, headers={**good(method), **headers}).status
        for method, path in every_route(site)
    }

    assert len(answers) >= 9
    assert set(answers.values()) == {status}


def test_every_route_answers_this_page_itself(site: Site) -> None:
    wanted = [(method, path) for method, path in every_route(site) if path != "/events"]

    answers = {path: site.request(method, path, headers=good(method)).status for method, path in wanted}

    assert {path for path, status in answers.items() if status in REFUSED - {FORBIDDEN}} == set()
    # The token of the form is missing; everywhere else, nothing is forbidden.
    assert {path for path, status in answers.items() if status == FORBIDDEN} == {"/login"}


def test_without_a_login_there_is_only_the_page_that_logs_in(site: Site) -> None:
    for method, path in every_route(site):
        headers = {name: value for name, value in good(method).items() if name != "authorization"}

        answer = site.request(method, path, headers=headers)

        assert (answer.status == UNAUTHORIZED) == ((method, path) not in PUBLIC), (method, path)
        assert "iterdev.toml" not in answer.text


def test_the_first_page_may_be_reached_from_another_site_and_shows_nothing_of_a_session(
    site: Site, sessions: Sessions
) -> None:
    sessions.start("A secret plan")

    answer = site.get("/", {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"})

    assert answer.status == HTTPStatus.OK
    assert "A secret plan" not in answer.text


@pytest.mark.parametrize(
    ("missing", "status"), [("x-iterdev", FORBIDDEN), ("origin", FORBIDDEN), ("authorization", UNAUTHORIZED)]
)
def test_no_change_is_made_without_its_header_its_origin_and_a_login(
    site: Site, missing: str, status: HTTPStatus
) -> None:
    acts = [path for method, path in every_route(site) if method == "POST" and path != "/login"]
    headers = {name: value for name, value in good("POST").items() if name != missing}

    assert acts
    assert {site.request("POST", path, headers=headers).status for path in acts} == {status}


@pytest.mark.parametrize(("path", "header"), [("/", "{}"), ("/sessions?q={}", ""), ("/s/{}", "")])
def test_an_address_and_headers_that_are_too_long_are_refused(site: Site, path: str, header: str) -> None:
    long = "x" * MOST_HEADER

    answer = site.get(path.format(long), {**BEARER, "padding": header.format(long)})

    assert answer.status == HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


@pytest.mark.parametrize("length", [str(MOST_BODY + 1), "9" * 5000, "-1", "many"])
def test_a_body_that_is_too_large_is_not_read(site: Site, length: str) -> None:
    headers = {**good("POST"), "content-length": length}

    assert site.request("POST", "/login", headers=headers).status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


def test_a_body_without_a_length_is_read_only_up_to_the_limit(site: Site) -> None:
    headers = {**good("POST"), "content-length": "0"}

    answer = site.request("POST", "/login", headers=headers, body=b"x" * (MOST_BODY + 1))

    assert answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_a_change_is_made_by_post_alone(site: Site, method: str) -> None:
    pages = {path for verb, path in site.routes() if verb == "GET"}
    only_acts = [path for verb, path in site.routes() if verb == "POST" and path not in pages]

    answers = {site.request(method, filled(path), headers=good(method)).status for path in only_acts}

    assert answers == {HTTPStatus.METHOD_NOT_ALLOWED}


def test_every_answer_has_the_headers_that_protect_the_page(site: Site) -> None:
    for method, path in [*every_route(site), ("GET", "/nothing/here"), ("PUT", "/")]:
        if path == "/events":
            continue
        for headers in (good(method), {}):
            answer = site.request(method, path, headers=headers)

            assert {name: answer.headers.get(name) for name in SECURITY_HEADERS} == dict(SECURITY_HEADERS)


def test_a_page_for_reading_has_no_route_that_changes_anything(sessions: Sessions) -> None:
    with closing(Watching(sessions.repo.path)) as watching:
        site = Site(watching, ActLog(sessions.repository), read_only=True)

        assert [path for method, path in site.routes() if method == "POST"] == ["/login"]


def test_a_web_socket_is_refused(site: Site) -> None:
    sent: list[object] = []

    async def connect() -> None:
        async def receive() -> dict[str, object]:
            return {"type": "websocket.connect"}

        async def send(message: object) -> None:
            sent.append(message)

        await site.application.app({"type": "websocket", "path": "/", "headers": []}, receive, send)

    asyncio.run(connect())

    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py", "/static/....//server.py"),
        *("/static//etc/passwd", "/static/%2fetc/passwd", "/static/", "/static/vendor", "/static/x%00.js"),
        *("/../../etc/passwd", "/s/../../etc/passwd", "/s/%2e%2e", "/s/..%2f..%2fetc", "/s/x/q/..%2f..%2fx", "//evil/"),
        *("/s/%00", "/s/%ff%fe", "/sessions/", "/S/x", "/api/s/..%2f..", "/api/", "/login", "/s/x/do/../accept"),
    ],
)
def test_an_address_that_leads_elsewhere_leads_nowhere(site: Site, path: str) -> None:
    assert site.get(path).status in {HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED}


def test_the_token_is_exchanged_for_a_cookie_that_no_script_and_no_other_site_gets(site: Site) -> None:
    answer = site.post("/login", {"token": TOKEN}, headers={})

    cookie = answer.headers["set-cookie"]
    value = cookie.split(";")[0]
    assert answer.status == HTTPStatus.NO_CONTENT
    assert value.startswith(f"iterdev-{PORT}=")
    assert TOKEN not in cookie
    assert {part.strip().lower() for part in cookie.split(";")[1:]} == {"httponly", "path=/", "samesite=strict"}
    assert site.get("/sessions", {"cookie": f"bad=\x01; other={TOKEN}; {value}"}).status == HTTPStatus.OK
    assert site.get("/sessions", {"cookie": f"iterdev-{PORT}={TOKEN}"}).status == UNAUTHORIZED


def test_a_cookie_does_not_help_a_wrong_token(site: Site) -> None:
    cookie = site.post("/login", {"token": TOKEN}, headers={}).headers["set-cookie"].split(";")[0]

    answer = site.get("/sessions", {"cookie": cookie, "authorization": "Bearer wrong"})

    assert answer.status == UNAUTHORIZED


def test_wrong_tokens_are_refused_and_then_all_of_them_for_a_minute() -> None:
    now = [0.0]
    credentials = Credentials(TOKEN, monotonic=lambda: now[0])

    wrong = [credentials.log_in("wrong") for _ in range(MOST_WRONG)]

    assert wrong == [None] * MOST_WRONG
    with pytest.raises(Locked):
        credentials.log_in(TOKEN)
    now[0] += LOCKED_SECONDS
    assert credentials.log_in(TOKEN)


def test_too_many_wrong_tokens_are_told_so_and_cookies_go_on(site: Site) -> None:
    cookie = site.post("/login", {"token": TOKEN}, headers={}).headers["set-cookie"].split(";")[0]

    statuses = [site.post("/login", {"token": "wrong"}, headers={}).status for _ in range(MOST_WRONG + 1)]

    assert statuses == [FORBIDDEN] * MOST_WRONG + [HTTPStatus.TOO_MANY_REQUESTS]
    assert site.get("/sessions").status == HTTPStatus.TOO_MANY_REQUESTS
    assert site.get("/sessions", {"cookie": cookie}).status == HTTPStatus.OK


def test_a_browser_has_at_most_eight_streams(site: Site) -> None:
    async def open_many() -> list[int]:
        held = [site.application._credentials.stream_of("bearer") for _ in range(MOST_STREAMS)]
        for one in held:
            one.__enter__()
        return [(await site.send("GET", "/events?view=/", headers=BEARER)).status]

    assert asyncio.run(open_many()) == [HTTPStatus.TOO_MANY_REQUESTS]


def test_the_log_of_acts_says_who_did_what_and_no_token(site: Site, sessions: Sessions, repo: Repo) -> None:
    site.post("/login", {"token": TOKEN}, headers={})
    site.post("/login", {"token": "wrong"}, headers={})

    path: Path = site.log.path
    text = path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    assert repo.path not in path.parents
    assert '"what": "login"' in text
    assert '"what": "wrong token"' in text
    assert TOKEN not in text
    assert ORIGIN not in text
