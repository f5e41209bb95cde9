"""Which repository of GitHub a checkout belongs to."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from iterdev.core.errors import UserError
from iterdev.host.github.remotes import remotes

PUBLIC_HOST = "github.com"
REMOTES = {"upstream": 0, "github": 1, "origin": 2}
"""The order in which `gh` looks at remotes."""
_REMOTE = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^@/]+@)?(?P<host>[^/:]+)(?::\d+)?/|(?:[^@/:]+@)?(?P<scp>[^/:]+):/?)"
    r"(?P<owner>[^/]+)/(?P<name>[^/]+?)(?:\.git)?/?"
)


class Project(NamedTuple):
    host: str
    owner: str
    name: str


def project_at(address: str) -> Project | None:
    """The repository at the address of a remote; None if it has not the form of one."""
    found = _REMOTE.fullmatch(address)
    return Project(found["host"] or found["scp"], found["owner"], found["name"]) if found else None


def project_of(top: Path, environment: Mapping[str, str]) -> Project:
    """That of GH_REPO, or of the checkout's remote."""
    if named := environment.get("GH_REPO"):
        *host, owner, name = named.split("/") if named.count("/") in {1, 2} else ("", "", "")
        if owner and name:
            return Project(host[0] if host else PUBLIC_HOST, owner, name)
        raise UserError(f'GH_REPO is "{named}"', hint="GH_REPO=OWNER/NAME")
    known = remotes(top)
    for remote in sorted(known, key=lambda one: REMOTES.get(one, len(REMOTES))):
        if found := project_at(known[remote]):
            return found
    raise UserError(
        f'No remote of "{top}" is a repository of GitHub', hint="git remote add origin https://github.com/OWNER/NAME"
    )
