"""W9: what the agent of an attempt says, as it says it, with a search over all of it."""

from msgspec import Struct
from msgspec.structs import replace

from iterdev.core.views.history import PastAttempt
from iterdev.surfaces.web.page import Page, PageRequest, Part
from iterdev.surfaces.web.views.session.head import session_page

MOST_MATCHES = 500


class Match(Struct, frozen=True):
    number: int
    before: str
    found: str
    after: str


def newest(request: PageRequest) -> Page:
    """The attempts of a session, those under way first."""
    with request.session() as watched:
        view, attempts = watched.view(room=0), watched.history().attempts
    ordered = sorted(attempts, key=lambda one: (one.ended_at is not None, -one.started_at))
    values = {"view": view, "attempts": ordered}
    return session_page(
        request, view, "output", "Output", Part(name="attempts", template="outputs.html", values=values)
    )


def page(request: PageRequest) -> Page:
    name, word = request.arguments["task"], request.query.get("q", "").strip()
    with request.session() as watched:
        view, attempts = watched.view(room=0), watched.history().attempts
        own = [one for one in attempts if one.task == name]
        if not own:
            request.missing(f'There is no attempt at "{name}"')
        number = request.number("attempt", own[-1].number)
        attempt = next((one for one in own if one.number == number), None)
        if attempt is None:
            request.missing(f'There is no attempt {number} at "{name}"')
        log = watched.attempt_log(attempt.task, attempt.number)
        size = log.size
        lines = log.new_lines()
    values = {
        "view": view,
        "attempt": attempt,
        "attempts": own,
        "others": [one for one in attempts if one.ended_at is None and one.task != name],
        "q": word,
        "matches": matches(lines, word),
        "size": size,
    }
    parts = (
        Part(name="output-head", template="output_head.html", values=values),
        Part(name="output", template="output.html", values={"lines": lines}, grows=True),
    )
    made = session_page(request, view, "output", f"Output of {name}", *parts)
    return replace(made, changes_with=lambda: log.size) if _is_running(attempt) else made


def _is_running(attempt: PastAttempt) -> bool:
    return attempt.ended_at is None


def matches(lines: list[str], word: str) -> list[Match]:
    """Every line that has the word, in letters of any case."""
    if not word:
        return []
    found = []
    for number, line in enumerate(lines, 1):
        place = line.casefold().find(word.casefold())
        if place >= 0:
            end = place + len(word)
            found.append(Match(number, line[max(place - 60, 0) : place], line[place:end], line[end : end + 120]))
    return found
