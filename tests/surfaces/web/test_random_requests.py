"""Ten thousand requests that no browser would send: each is answered, and none with an error of ours."""

import asyncio
import random
from collections import Counter

from tests.app.conftest import Sessions, failed
from tests.surfaces.web.conftest import ACTING, BEARER, Site

REQUESTS = 10_000
WORDS = (
    *("", "x", "..", "%2e%2e", "%00", "%ff", "a" * 300, "-1", "0", "1", "999999999999999999999", "1e9", "٣", "null"),
    *("DEV-001", "plan", "accept", "rollback", "wave-1", "<script>", "'", '"', "{{7*7}}", "%0d%0aX: y", "\u202e"),
)
NAMES = (
    "q",
    "page",
    "status",
    "role",
    "order",
    "state",
    "target",
    "moved",
    "all",
    "view",
    "mark",
    "at",
    "round",
    "file",
    "attempt",
    "part",
    "fold",
    "layout",
    "name",
    "text",
)
METHODS = ("GET", "GET", "GET", "POST", "HEAD", "PUT")


def test_no_request_makes_the_server_fail(site: Site, sessions: Sessions) -> None:
    session = sessions.start("Fix it", *failed())
    chance = random.Random(20261118)
    patterns = [path for _, path in site.routes()]

    def address() -> str:
        path = chance.choice(patterns)
        while "{" in path:
            before, _, rest = path.partition("{")
            name, _, after = rest.partition("}")
            known = {"session": session, "task": "DEV-001", "act": "retry", "gate": "plan"}.get(name, "x")
            path = before + chance.choice((known, known, chance.choice(WORDS))) + after
        if chance.random() < 0.1:
            path += chance.choice(("/", "//", "/..", "%", "?", "#"))
        query = "&".join(f"{chance.choice(NAMES)}={chance.choice(WORDS)}" for _ in range(chance.randrange(4)))
        return f"{path}?{query}"

    async def send_all() -> Counter[int]:
        statuses: Counter[int] = Counter()
        for _ in range(REQUESTS):
            method, path = chance.choice(METHODS), address()
            if path.startswith("/events") and "view=" in path:
                continue
            fields = {name: chance.choice(WORDS) for name in ("seq", "choice", "opened", "target", "force")}
            body = "&".join(f"{name}={value}" for name, value in fields.items()).encode("utf-8", "replace")
            headers = {**BEARER, **(ACTING if chance.random() < 0.9 else {})}
            answer = await site.send(method, path, headers=headers, body=body if method == "POST" else b"")
            statuses[answer.status] += 1
        return statuses

    before = sessions.repository.journal.newest(session)
    statuses = asyncio.run(send_all())

    assert [status for status in statuses if status >= 500] == []
    assert {200, 404} <= set(statuses)
    assert sessions.repository.journal.newest(session) == before
