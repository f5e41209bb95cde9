"""The teams that there are; the first one is the default."""

from iterdev.teams.contract import Team
from iterdev.teams.development.team import DEVELOPMENT
from iterdev.teams.issues.team import ISSUES

DEFAULT_TEAM: Team = DEVELOPMENT
TEAMS: dict[str, Team] = {team.name: team for team in (DEFAULT_TEAM, ISSUES)}
