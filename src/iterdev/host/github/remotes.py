"""The remotes of a repository: their addresses, and pushing a commit to one."""

from pathlib import Path

from iterdev.core.errors import HostError
from iterdev.host.git.command import GitFailed, git

SECONDS = 600


def remotes(top: Path) -> dict[str, str]:
    """The address of each remote."""
    return {
        name: git("remote", "get-url", name, cwd=top).stdout.strip() for name in git("remote", cwd=top).stdout.split()
    }


def push(top: Path, remote: str, commit: str, branch: str) -> None:
    """Makes the commit a branch of the remote. What is there and not part of the commit is never overwritten."""
    try:
        git("push", "--quiet", remote, f"{commit}:refs/heads/{branch}", cwd=top, seconds=SECONDS)
    except GitFailed as error:
        raise HostError(
            f'"{branch}" cannot be pushed to "{remote}": {error.message.partition(": ")[2]}',
            hint=f"git push {remote} {commit[:12]}:refs/heads/{branch}",
        ) from error
