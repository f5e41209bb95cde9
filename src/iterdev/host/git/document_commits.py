"""Puts files that are in no worktree into a commit, so that they can be fetched like all others."""

import re
from collections.abc import Mapping
from pathlib import Path

from iterdev.host.git.command import git_bytes

NAME = re.compile(r"[\w.-]+(/[\w.-]+)*")
"""Of files whose name needs no quotes; others are left out."""
NOBODY = "committer iterdev <documents@iterdev.invalid> 0 +0000"
PASSING = "refs/iterdev/_documents"
"""The ref that git needs while it makes the commit, and that is gone afterwards."""


def commit_files(top: Path, files: Mapping[str, bytes], *, known: str, parent: str = "") -> str:
    """The commit with exactly these files, by their paths; no ref leads to it. Ids are as long as a `known` one."""
    before = f"from {parent}\ndeleteall\n" if parent else ""
    lines = [f"reset {PASSING}\n\ncommit {PASSING}\nmark :1\n{NOBODY}\ndata 0\n{before}".encode()]
    for name, body in sorted(files.items()):
        if NAME.fullmatch(name) and ".." not in name and ".git" not in name.split("/"):
            lines.append(b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(body), body))
    lines.append(f"get-mark :1\nreset {PASSING}\nfrom {'0' * len(known)}\n".encode())
    return git_bytes("fast-import", "--quiet", "--force", cwd=top, stdin=b"".join(lines)).decode().strip()
