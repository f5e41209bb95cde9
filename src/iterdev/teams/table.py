"""The teams that there are, and the fold of a journal with the team that its session names."""

from collections.abc import Sequence

from iterdev.core.session import fold
from iterdev.core.session.events import Entry, SessionStarted
from iterdev.core.session.state import State
from iterdev.teams.contract import Team
from iterdev.teams.development.team import DEVELOPMENT

TEAMS: dict[str, Team] = {team.name: team for team in (DEVELOPMENT,)}
DEFAULT_TEAM = DEVELOPMENT.name


def team_of(state: State) -> Team:
    return TEAMS[state.session.team]


def replay(entries: Sequence[Entry]) -> State | None:
    """The state that a whole journal folds to; None for an empty one."""
    if not entries:
        return None
    first = entries[0].event
    if not isinstance(first, SessionStarted):
        raise TypeError(f"a journal begins with SessionStarted, not {type(first).__name__}")
    return fold.replay(entries, TEAMS[first.session.team])
