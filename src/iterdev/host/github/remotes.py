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


def push(top: Path, remote: str, commit: str, branch: str, known: str = "") -> None:
    """Makes the commit a branch of the remote. What is there and not part of the commit is never overwritten.

    Only `known`, which iterdev itself pushed before, may be replaced: after a rollback it is not part of the commit.
    """
    ref = f"refs/heads/{branch}"
    words = ("push", "--quiet", remote, f"{commit}:{ref}")
    try:
        done = git(*words, cwd=top, seconds=SECONDS, accept=(0, 1, 128) if known else (0,))
        if done.returncode:
            git(*words, f"--force-with-lease={ref}:{known}", cwd=top, seconds=SECONDS)
    except GitFailed as error:
        raise HostError(
            f'"{branch}" cannot be pushed to "{remote}": {error.message.partition(": ")[2]}',
            hint=f"git push {remote} {commit[:12]}:refs/heads/{branch}",
        ) from error
