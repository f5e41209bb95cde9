"""The keys of the dashboards: one table, from which the terminal and the web page take their keys and their help."""

from collections.abc import Iterator
from enum import StrEnum

from msgspec import Struct


class Surface(StrEnum):
    terminal = "terminal"
    web = "web"


class Place(StrEnum):
    """Where a key works."""

    everywhere = "everywhere"
    list = "list"
    """A list of sessions, tasks, files or needs."""
    task = "task"
    changes = "changes"
    output = "output"
    question = "question"


class Action(StrEnum):
    needs = "needs"
    sessions = "sessions"
    session = "session"
    timeline = "timeline"
    changes = "changes"
    output = "output"
    answer = "answer"
    filter = "filter"
    command = "command"
    keys = "keys"
    quit = "quit"
    back = "back"
    down = "down"
    up = "up"
    open = "open"
    next_finding = "next finding"
    previous_finding = "previous finding"
    comment = "comment"
    previous_round = "previous round"
    next_round = "next round"
    next_agent = "next agent"
    follow = "follow"
    next_match = "next match"
    previous_match = "previous match"
    edit_plan = "edit plan"
    choose = "choose"


BOTH = frozenset(Surface)
TERMINAL = frozenset({Surface.terminal})


class Key(Struct, frozen=True, kw_only=True):
    action: Action
    keys: tuple[str, ...]
    """Any of them does it. Two with a space between them are pressed one after the other."""
    help: str
    place: Place = Place.everywhere
    surfaces: frozenset[Surface] = BOTH


KEYS = (
    Key(action=Action.needs, keys=("p", "g n"), help="What needs you, in all sessions"),
    Key(action=Action.sessions, keys=("s", "g s"), help="All sessions"),
    Key(action=Action.session, keys=("g p",), help="The tasks of the session"),
    Key(action=Action.timeline, keys=("t", "g t"), help="The time line of the session"),
    Key(action=Action.changes, keys=("d", "g d"), help="The changes, with the findings of reviews"),
    Key(action=Action.output, keys=("o", "g o"), help="What the agent says"),
    Key(action=Action.answer, keys=("a",), help="Answer the open question"),
    Key(action=Action.filter, keys=("/",), help="Filter the list, or search the output"),
    Key(action=Action.command, keys=(":",), help="Type a command", surfaces=TERMINAL),
    Key(action=Action.keys, keys=("?",), help="The keys"),
    Key(action=Action.back, keys=("Escape",), help="Close, or go back"),
    Key(action=Action.quit, keys=("q",), help="Quit; the session continues", surfaces=TERMINAL),
    Key(action=Action.down, keys=("j",), help="Next row", place=Place.list),
    Key(action=Action.up, keys=("k",), help="Previous row", place=Place.list),
    Key(action=Action.open, keys=("Enter",), help="Open the row", place=Place.list),
    Key(action=Action.next_finding, keys=("n",), help="Next finding", place=Place.changes),
    Key(action=Action.previous_finding, keys=("N",), help="Previous finding", place=Place.changes),
    Key(action=Action.comment, keys=("c",), help="Comment on the change", place=Place.changes),
    Key(action=Action.previous_round, keys=("[",), help="The round before", place=Place.changes),
    Key(action=Action.next_round, keys=("]",), help="The round after", place=Place.changes),
    Key(action=Action.next_agent, keys=("Tab",), help="Next agent", place=Place.output, surfaces=TERMINAL),
    Key(action=Action.follow, keys=("f",), help="Follow the output, or stop following", place=Place.output),
    Key(action=Action.next_match, keys=("n",), help="Next match of the search", place=Place.output),
    Key(action=Action.previous_match, keys=("N",), help="Match before", place=Place.output),
    Key(action=Action.edit_plan, keys=("e",), help="Edit the plan", place=Place.question),
    Key(action=Action.choose, keys=tuple("123456789"), help="Choose the answer of this number", place=Place.question),
)


def keys_of(surface: Surface) -> Iterator[Key]:
    return (key for key in KEYS if surface in key.surfaces)
