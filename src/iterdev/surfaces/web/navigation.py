"""What links to what: the menu of every page, the tabs of a session, and where keys lead."""

from iterdev.core.views.keys import Action

MENU = (
    ("needs", "Needs you", "/"),
    ("sessions", "Sessions", "/sessions"),
    ("new", "New", "/new"),
)
"""The name of a place, its label and its address."""

TABS = (
    ("pipeline", "Pipeline", "/s/{session}"),
    ("timeline", "Time line", "/s/{session}/timeline"),
    ("plan", "Plan", "/s/{session}/plan"),
    ("journal", "Journal", "/s/{session}/journal"),
)
"""The pages of a session."""

KEY_LINKS = {
    Action.needs: "/",
    Action.sessions: "/sessions",
    Action.session: "/s/{session}",
    Action.timeline: "/s/{session}/timeline",
}
