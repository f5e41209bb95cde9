"""Pages as HTML. Whatever comes from agents, git and files is text: it is escaped, and loses its control codes."""

import hashlib
import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from msgspec import Struct

from iterdev.core.formatting import counted, duration, percent, plain
from iterdev.core.views.attention import NeedKind
from iterdev.core.views.keys import Surface, keys_of
from iterdev.surfaces.web.navigation import KEY_LINKS, MENU, TABS
from iterdev.surfaces.web.page import Page, PageRequest, Part

FOLDER = Path(__file__).parent
TOP = "top"
"""The part above every page: the navigation, and how many things need the user."""
MARK_LENGTH = 16


class Rendered(Struct, frozen=True, kw_only=True):
    page: Page
    parts: Mapping[str, str]
    """The HTML inside of each part."""
    mark: str
    """A digest of the parts: a page with the same mark shows the same."""


def _finalize(value: object) -> object:
    return plain(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {
        "clock": clock,
        "counted": counted,
        "duration": duration,
        "iso": iso,
        "money": money,
        "percent": percent,
        "time_of_day": time_of_day,
        "short": lambda commit: str(commit or "")[:10],
        "tokens": tokens,
    }
    return made


def iso(at: float) -> str:
    """A point in time, in the zone of the user."""
    return datetime.fromtimestamp(at).astimezone().isoformat(timespec="seconds")


def clock(at: float) -> str:
    """The time of today, or the date and the time."""
    then, now = datetime.fromtimestamp(at).astimezone(), datetime.fromtimestamp(time.time()).astimezone()
    return then.strftime("%H:%M" if then.date() == now.date() else "%b %-d, %H:%M")


def time_of_day(at: float) -> str:
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S")


def tokens(count: int) -> str:
    """A number of tokens in at most four characters and a unit: "812", "12 k", "1.2 M"."""
    if count < 1000:
        return str(count)
    value, unit = (count / 1_000_000, "M") if count >= 999_500 else (count / 1000, "k")
    return f"{value:.1f} {unit}" if value < 10 else f"{value:.0f} {unit}"


def money(usd: float) -> str:
    return f"${usd:,.2f}"


ENVIRONMENT = _environment()


def render_text(template: str, **values: Any) -> str:  # noqa: ANN401 - whatever the template names
    return ENVIRONMENT.get_template(template).render(values)


def render(page: Page, request: PageRequest) -> Rendered:
    parts = {part.name: render_part(part) for part in (_top(page, request), *page.parts)}
    digest = hashlib.blake2b("\0".join(parts.values()).encode("utf-8", "surrogatepass"))
    return Rendered(page=page, parts=parts, mark=digest.hexdigest()[:MARK_LENGTH])


def render_part(part: Part) -> str:
    return render_text(part.template, **part.values)


def document(rendered: Rendered, request: PageRequest) -> str:
    """The whole page."""
    page = rendered.page
    links = {action: link.format(session=page.session) for action, link in KEY_LINKS.items() if _is_linked(link, page)}
    return render_text(
        "page.html",
        page=page,
        parts={name: Markup(html) for name, html in rendered.parts.items()},  # noqa: S704 - rendered by our templates
        growing={part.name: part for part in page.parts if part.grows},
        mark=rendered.mark,
        view=request.path,
        keys=list(keys_of(Surface.web)),
        links=links,
    )


def _is_linked(link: str, page: Page) -> bool:
    return page.session is not None or "{session}" not in link


def _top(page: Page, request: PageRequest) -> Part:
    with request.sessions() as sessions:
        needs = sum(need.kind is not NeedKind.paused for need in sessions.needs())
    tabs = [(name, label, link.format(session=page.session)) for name, label, link in TABS if page.session]
    values = {
        "page": page,
        "menu": MENU,
        "tabs": tabs,
        "needs": needs,
        "repository": request.watching.top.name,
        "may_act": request.may_act,
    }
    return Part(name=TOP, template="top.html", values=values)
