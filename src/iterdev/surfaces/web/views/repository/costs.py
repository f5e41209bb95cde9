"""W11: what the sessions of the repository have cost."""

from datetime import datetime, timedelta

from iterdev.surfaces.web.page import Page, PageRequest, Part

SIZE = 100
"""The newest sessions that are added up."""
WEEK = timedelta(days=7)


def page(request: PageRequest) -> Page:
    with request.sessions() as sessions:
        views = [sessions.overview(line.summary) for line in reversed(sessions.sessions()[-SIZE:])]
    begin = (datetime.now().astimezone() - WEEK).timestamp()
    ordered = sorted(views, key=lambda view: (view.usage.cost_usd, view.usage.tokens), reverse=True)
    recent = [view for view in views if view.changed_at >= begin]
    values = {
        "views": ordered,
        "recent": len(recent),
        "cost": sum(view.usage.cost_usd for view in recent),
        "tokens": sum(view.usage.tokens for view in recent),
        "most": max((view.usage.tokens for view in views), default=0) or 1,
    }
    return Page(title="Cost", parts=(Part(name="costs", template="costs.html", values=values),), place="cost")
