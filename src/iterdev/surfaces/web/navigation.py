"""What links to what: the menu of every page, the tabs of a session, and where keys lead."""

from iterdev.core.views.keys import Action

MENU = (
    ("needs", "Needs you", "/"),
    ("sessions", "Sessions", "/sessions"),
    ("issues", "Issues", "/issues"),
    ("boards", "Boards", "/boards/feedback"),
    ("cost", "Cost", "/cost"),
    ("new", "New", "/new"),
)
"""The name of a place, its label and its address."""

TABS = (
    ("pipeline", "Pipeline", "/s/{session}"),
    ("timeline", "Time line", "/s/{session}/timeline"),
    ("changes", "Changes", "/s/{session}/changes"),
    ("review", "Review", "/s/{session}/review"),
    ("tests", "Tests", "/s/{session}/tests"),
    ("documents", "Documents", "/s/{session}/documents"),
    ("output", "Output", "/s/{session}/output"),
    ("plan", "Plan", "/s/{session}/plan"),
    ("cost", "Cost", "/s/{session}/cost"),
    ("locks", "Locks", "/s/{session}/locks"),
    ("bus", "Bus", "/s/{session}/bus"),
    ("board", "Board", "/s/{session}/board"),
    ("journal", "Journal", "/s/{session}/journal"),
)
"""The pages of a session."""

KEY_LINKS = {
    Action.needs: "/",
    Action.sessions: "/sessions",
    Action.session: "/s/{session}",
    Action.timeline: "/s/{session}/timeline",
    Action.changes: "/s/{session}/changes",
    Action.output: "/s/{session}/output",
}
