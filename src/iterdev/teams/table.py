"""The teams that there are; the first one is the default."""

from iterdev.teams.contract import Team
from iterdev.teams.development.team import DEVELOPMENT

DEFAULT_TEAM: Team = DEVELOPMENT
TEAMS = {team.name: team for team in (DEFAULT_TEAM,)}
