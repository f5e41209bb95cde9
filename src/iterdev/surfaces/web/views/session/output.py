"""W9: the live output of agents: of one, with a search over all of it, or of those that run, side by side."""

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from iterdev.app.live.watch import SessionWatch
from iterdev.app.logs import LogTail, SaidLine
from iterdev.core.views.history import PastAttempt
from iterdev.surfaces.web.page import File, Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page

MOST_MATCHES = 500
MOST_TOGETHER = 4
"""Agents whose output is side by side."""
END, STEP = 200, 100
"""Lines of each of them: at least the last of so many, whose first one moves in steps, so that most often only what is
new has to be sent."""


class Match(Struct, frozen=True):
    number: int
    before: str
    found: str
    after: str


def together(request: PageRequest) -> Page:
    """The end of what each agent at work says, and all attempts, those under way first."""
    with request.session() as watched:
        view, attempts = watched.view(room=0), watched.history().attempts
        running = [one for one in attempts if one.ended_at is None][:MOST_TOGETHER]
        logs = {one: watched.attempt_log(one.task, one.number) for one in running}
        shown = tuple(_end(request, one, log.new_said()) for one, log in logs.items())
    ordered = sorted(attempts, key=lambda one: (one.ended_at is not None, -one.started_at))
    listed = Part(name="attempts", template="outputs.html", values={"view": view, "attempts": ordered})
    made = session_page(request, view, "output", "Output", *shown, listed)
    return replace(made, changes_with=lambda: [log.size for log in logs.values()]) if logs else made


def _end(request: PageRequest, attempt: PastAttempt, lines: Sequence[SaidLine]) -> Part:
    first = max((len(lines) - END) // STEP * STEP, 0)
    link = f"/s/{request.arguments['session']}/t/{attempt.task}/output?attempt={attempt.number}"
    return Part(
        name=f"output-{attempt.task}",
        template="output.html",
        values={"lines": lines[first:], "numbered": False},
        grows=True,
        heading=f"{attempt.task} · {attempt.agent}",
        link=link,
    )


def page(request: PageRequest) -> Page:
    word = request.query.get("q", "").strip()
    with request.session() as watched:
        view, attempts = watched.view(room=0), watched.history().attempts
        own, attempt, log = _named(request, watched)
        lines = log.new_said()
    values = {
        "view": view,
        "attempt": attempt,
        "attempts": own,
        "others": [one for one in attempts if one.ended_at is None and one.task != attempt.task],
        "q": word,
        "matches": list(matches(lines, word)),
        "most": MOST_MATCHES,
    }
    parts = (
        Part(name="output-head", template="output_head.html", values=values),
        Part(name="output", template="output.html", values={"lines": lines, "numbered": True}, grows=True),
    )
    made = session_page(request, view, "output", f"Output of {attempt.task}", *parts)
    return replace(made, changes_with=lambda: log.size) if attempt.ended_at is None else made


def download(request: PageRequest) -> File:
    """The log as it is."""
    with request.session() as watched:
        _, attempt, log = _named(request, watched)
        text = "".join(f"{line}\n" for line in log.new_raw())
    return File(name=f"{attempt.task}-{attempt.number}.log", text=text)


def _named(request: PageRequest, watched: SessionWatch) -> tuple[list[PastAttempt], PastAttempt, LogTail]:
    """The attempts at the task that the address names, the one of them that is meant, and its log."""
    name = request.arguments["task"]
    own = [one for one in watched.history().attempts if one.task == name]
    if not own:
        request.missing(f'There is no attempt at "{name}"')
    number = request.number("attempt", own[-1].number)
    attempt = next((one for one in own if one.number == number), None)
    if attempt is None:
        request.missing(f'There is no attempt {number} at "{name}"')
    return own, attempt, watched.attempt_log(attempt.task, attempt.number)


def matches(lines: Sequence[SaidLine], word: str) -> Iterator[Match]:
    """Every line that has the word, in letters of any case."""
    wanted = re.compile(re.escape(word), re.IGNORECASE)
    for number, line in enumerate(lines if word else (), 1):
        if found := wanted.search(line.text):
            begin, end = found.span()
            yield Match(number, line.text[max(begin - 60, 0) : begin], found[0], line.text[end : end + 120])
