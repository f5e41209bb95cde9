"""Where things are on this machine: the state of a repository, and the worktrees outside of it."""

import hashlib
import os
from pathlib import Path


def state_root() -> Path:
    """Where worktrees of every repository live; ITERDEV_HOME moves it."""
    if home := os.environ.get("ITERDEV_HOME"):
        return Path(home)
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "iterdev"


def workspaces_of(top: Path) -> Path:
    """The folder of one repository's worktrees; its name begins with that of the repository."""
    key = hashlib.sha256(str(top).encode()).hexdigest()[:8]
    return state_root() / f"{top.name}-{key}"


def temps() -> Path:
    """The folder of temp dirs; short, because the path of a socket has 107 characters at most."""
    return state_root() / "tmp"


def environments() -> Path:
    """The folder of the environments that all workspaces share."""
    return state_root() / "environments"


def web_servers() -> Path:
    """The folder of the servers of web pages, which has their tokens: no agent may see it."""
    return state_root() / "web"


def web_server_of(top: Path) -> Path:
    """The folder of the server of one repository's web page."""
    return web_servers() / workspaces_of(top).name


def make_private(folder: Path) -> None:
    """Creates a folder, and those above it that are missing, so that only their owner can look into them."""
    if not folder.exists():
        make_private(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)
