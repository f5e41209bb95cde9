"""Reads issues of GitHub through its command `gh`, which has the user's login."""

import os
import subprocess
from pathlib import Path

import msgspec
from msgspec import Struct

from iterdev.core.errors import HostError

SECONDS = 30
QUIET = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
OTHERWISE = "save the text of the issue to a file, and use --file PATH"


class _Author(Struct, frozen=True):
    login: str = ""


class Comment(Struct, frozen=True):
    body: str = ""
    author: _Author | None = None


class GitHubIssue(Struct, frozen=True):
    title: str
    body: str = ""
    comments: tuple[Comment, ...] = ()


def read_issue(top: Path, number: int) -> GitHubIssue:
    """An issue of the repository that the checkout belongs to."""
    argv = ["gh", "issue", "view", str(number), "--json", "title,body,comments"]
    try:
        done = subprocess.run(
            argv,
            cwd=top,
            env=os.environ | QUIET,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise HostError("`gh` is not installed, which reads issues of GitHub", hint=OTHERWISE) from error
    except subprocess.TimeoutExpired as error:
        raise HostError(f"`{' '.join(argv)}` did not end within {SECONDS} s", hint=OTHERWISE) from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or [f"it ended with {done.returncode}"]
        raise HostError(f"`gh issue view {number}` failed: {said[0]}", hint=f"gh auth status, or {OTHERWISE}")
    try:
        return msgspec.json.decode(done.stdout, type=GitHubIssue)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise HostError(f"`gh issue view {number}` gave an unexpected answer: {error}", hint=OTHERWISE) from error
