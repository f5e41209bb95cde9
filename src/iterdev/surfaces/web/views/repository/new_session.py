"""W17: starts a session in the background. What the text speaks for is shown while it is typed."""

import shlex
from collections.abc import Iterator, Mapping

from iterdev.app import resume, start
from iterdev.core.errors import UserError
from iterdev.surfaces.web.page import ActRequest, Done, Page, PageRequest, Part

AGENT = "agent."
"""Begins the names of the fields for the agents of roles."""


def page(request: PageRequest) -> Page:
    text = request.query.get("text", "")
    with request.repository() as repository:
        choices = start.new_session_choices(repository, text)
    values = {"choices": choices, "fields": request.query, "text": text, "may_act": request.may_act}
    said = {"choices": choices, "text": text, "command_line": command(request.query)}
    return Page(
        title="New session",
        place="new",
        parts=(
            Part(name="new", template="new_session.html", values=values),
            Part(name="assessment", template="assessment.html", values=said),
        ),
        is_live=False,
    )


def begin(request: ActRequest) -> Done:
    fields = request.fields
    with request.repository() as repository:
        pairs = [f"{role}={agent}" for role, agent in _agents(fields)]
        asked = start.Request(
            requirement=fields.get("text", ""),
            auto=fields.get("ask") != "1",
            pipeline=_one_of(fields.get("pipeline", ""), start.PIPELINES),
            concurrency=_number(fields.get("concurrency", "")),
            role_agents=start.role_agents(repository, pairs),
        )
        session = start.start(repository, asked, budget_usd=_money(fields.get("budget", "")))
        resume.detach(repository, session)
    return Done(what=f"run {session}", go_to=f"/s/{session}")


def command(fields: Mapping[str, str]) -> str:
    """What to type for the same."""
    words = ["iterdev", "run", "--detach"]
    if "text" in fields and fields.get("ask") != "1":
        words.append("-y")
    if pipeline := fields.get("pipeline"):
        words += ["--pipeline", pipeline]
    if concurrency := fields.get("concurrency"):
        words += ["-c", concurrency]
    if budget := fields.get("budget"):
        words += ["--budget", budget]
    for role, agent in _agents(fields):
        words += ["--role-agent", f"{role}={agent}"]
    return shlex.join([*words, fields.get("text", "") or "TEXT"])


def _agents(fields: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((name.removeprefix(AGENT), value) for name, value in fields.items() if name.startswith(AGENT) and value)


def _one_of(text: str, known: tuple[str, ...]) -> str | None:
    if text and text not in known:
        raise UserError(f'There is no pipeline "{text}"', hint=f"one of: {', '.join(known)}")
    return text or None


def _money(text: str) -> float | None:
    try:
        return float(text) if text.strip() else None
    except ValueError:
        raise UserError(f'"{text}" is not an amount of money', hint="5") from None


def _number(text: str) -> int | None:
    if text and not (text.isascii() and text.isdecimal() and len(text) < 6):
        raise UserError(f'"{text}" is not a number of agents', hint="3")
    return int(text) if text else None
