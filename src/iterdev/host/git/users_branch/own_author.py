"""The agents' commits, made again with the user as author and committer: the same files, messages and dates."""

from pathlib import Path

from iterdev.host.git import commits, refs
from iterdev.host.git.command import GitFailed, Identity, git, users_git
from iterdev.host.git.landing import DOMAIN

NOBODY = Identity("iterdev", f"iterdev@{DOMAIN}")
"""Of commits that no branch gets."""


def rewritten(top: Path, work: str, known: str, accepted: str) -> str:
    """The commit that has the history of the work, as far as HEAD does not have it.

    What is in `known`, a commit of the session, came as `accepted` before, and is not made again.
    """
    others = (f"^{known}",) if known else ()
    lines = git("rev-list", "--topo-order", "--reverse", "--parents", work, "^HEAD", *others, cwd=top).stdout
    made: dict[str, str] = {}
    earlier = _earlier(top, known, accepted) if known else ""
    for commit, *parents in (line.split() for line in lines.splitlines()):
        for parent in parents:
            if earlier and parent not in made and refs.is_ancestor(top, parent, known):
                made[parent] = earlier
        made[commit] = _remade(top, commit, [made.get(parent, parent) for parent in parents], parents)
    return made.get(work, work)


def _earlier(top: Path, known: str, accepted: str) -> str:
    """The commit with the files of `known`: the accepted one, or what it merged."""
    around = [accepted, *commits.parents_and_tree(top, accepted)[:-1]]
    return next((one for one in around if commits.tree_of(top, one) == commits.tree_of(top, known)), "")


def _remade(top: Path, commit: str, parents: list[str], before: list[str]) -> str:
    form = "--format=%T%x00%an%x00%ae%x00%ad%x00%B"
    shown = git("show", "--no-patch", "--date=raw", form, commit, cwd=top).stdout
    tree, name, email, date, message = shown.split("\0", 4)
    is_agents = email.endswith(f"@{DOMAIN}")
    if not is_agents and parents == before:
        return commit
    author = {} if is_agents else {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email}
    options = [word for parent in parents for word in ("-p", parent)]
    # Unlike `git commit`, this command does not look at the setting.
    signs = git("config", "--type=bool", "--get", "commit.gpgSign", cwd=top, accept=(0, 1)).stdout.strip() == "true"
    words = ("commit-tree", *options, *(["-S"] if signs else []), tree)
    ran = users_git(*words, cwd=top, stdin=f"{message.rstrip()}\n", env={"GIT_AUTHOR_DATE": date, **author})
    if ran.returncode:
        raise GitFailed(words, ran.returncode, ran.stderr)
    return ran.stdout.strip()
