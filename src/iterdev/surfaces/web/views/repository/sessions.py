"""W2: every session of the repository in a line, the newest first."""

from collections.abc import Mapping

from msgspec import Struct

from iterdev.core.types import Phase
from iterdev.core.views.session import SessionLine, SessionView
from iterdev.surfaces.web.page import Page, PageRequest, Part

SIZE = 50
"""Sessions of a page; one that is decided is folded when it is shown for the first time."""
ALL, ACTIVE, ARCHIVED = "all", "active", "archived"
STATES = (ALL, ACTIVE, ARCHIVED, "running", "waiting", "finished")
"""A session is active until it is archived; the last three say more about it."""


class Row(Struct, frozen=True, kw_only=True):
    line: SessionLine
    view: SessionView
    glyph: str
    word: str
    """Names the state, also for the style."""


def page(request: PageRequest) -> Page:
    text, state = request.query.get("q", "").strip(), request.query.get("state") or ALL
    with request.sessions() as sessions:
        lines = [line for line in reversed(sessions.sessions()) if _fits(line, text, state)]
        total = len(sessions.sessions())
        pages = max(-(-len(lines) // SIZE), 1)
        number = min(max(request.number("page", 1), 1), pages)
        shown = lines[(number - 1) * SIZE : number * SIZE]
        rows = [_row(line, sessions.overview(line.summary)) for line in shown]
    values: Mapping[str, object] = {
        "rows": rows,
        "total": total,
        "matching": len(lines),
        "number": number,
        "pages_": pages,
        "q": text,
        "state": state,
        "states": STATES,
        "top": str(request.watching.top),
    }
    part = Part(name="sessions", template="sessions.html", values=values)
    return Page(title="Sessions", place="sessions", parts=(part,))


def _fits(line: SessionLine, text: str, state: str) -> bool:
    summary, word = line.summary, text.casefold()
    fits = not word or word in summary.id.casefold() or word in summary.requirement.casefold()
    return fits and state in _states(line)


def _states(line: SessionLine) -> tuple[str, ...]:
    """The words of the filter that fit."""
    summary = line.summary
    if summary.phase is Phase.archived:
        return ALL, ARCHIVED
    if line.running:
        return ALL, ACTIVE, "running"
    return ALL, ACTIVE, "finished" if summary.outcome else "waiting"


def _row(line: SessionLine, view: SessionView) -> Row:
    glyph, word = _mark(line, view)
    return Row(line=line, view=view, glyph=glyph, word=word)


def _mark(line: SessionLine, view: SessionView) -> tuple[str, str]:
    summary = line.summary
    if view.gates:
        return "?", "asks"
    if line.running:
        return "▸", "running"
    if summary.accepted:
        return "=", "merged"
    if summary.phase is Phase.archived:
        return "-", "archived"
    if view.outcome.succeeded:
        return "✓", "ready" if view.branch.has_changes else "done"
    return ("✗", "failed") if summary.outcome else ("↻", "stopped")
