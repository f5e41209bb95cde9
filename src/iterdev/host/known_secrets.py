"""Secret values that iterdev can know: of variables, of `.env` files, and of git's settings."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from iterdev.host import text_files

SECRET_NAME = re.compile(
    r"KEY|TOKEN|SECRET|PASSW|PASSPHRASE|PASSCODE|PASS$|_PWD$|CREDENTIAL|PRIVATE|AUTH(?!OR)|COOKIE|WEBHOOK"
    r"|SESSION_ID$|DSN$|CONNECTION_STRING",
    re.IGNORECASE,
)
IN_URL = re.compile(r"://[^\s/:@]*+:(\S+)@$")
"""A password in a URL up to its last `@`; people do not always encode what is in it."""
IN_TEXT = re.compile(r"(?i)(?:password|passwd|pwd|accountkey|sharedaccesskey|access_token|sslpassword)=([^;&\s\"']+)")
"""A password in the settings of a connection."""
RANDOM = re.compile(r"(?=.*[a-z])(?=.*[A-Z])(?=(?:.*?\d){3})[\w+][\w+/=.~-]{19,}")
"""A long value that is neither words nor a path."""
EXAMPLES = (".example", ".sample", ".template", ".dist", ".defaults")
"""What the names of `.env` files end with that hold no secrets."""
LARGEST = 1024 * 1024
COMMON_WORDS = frozenset(
    [
        *("password", "postgres", "postgresql", "secret", "changeme", "change-me", "change_me", "example"),
        *("default", "localhost", "development", "production", "testing", "undefined", "redacted", "placeholder"),
        *("required", "optional", "disabled", "enabled", "public", "private", "username", "mongodb", "rabbitmq"),
        "dummy-key",
    ]
)
"""Passwords of examples: to remove them would blank out ordinary words, and they protect nothing."""

_PAIR = re.compile(
    r"""^[ \t]*(?:export[ \t]+)?([\w.-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*+)"|'([^']*+)'|([^\r\n]*))""", re.MULTILINE
)


def of_environment(environment: Mapping[str, str]) -> Iterator[str]:
    for name, value in environment.items():
        yield from _of_pair(name, value)


def of_files(env_files: Sequence[Path]) -> Iterator[str]:
    for name, value in (pair for file in env_files for pair in _pairs_of(file)):
        yield from _of_pair(name, value)
        if RANDOM.fullmatch(value):
            yield value


def of_settings(settings: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Of the settings of git: passwords in addresses, of which some are names, and headers that log in."""
    for name, value in settings:
        yield from _in_text(f"{name} {value}")
        if name.endswith("extraheader"):
            yield value.split()[-1]


def env_files(top: Path, copied: Sequence[str] = ()) -> list[Path]:
    """The `.env` files of a repository: at its top, and those that are copied to every worktree."""
    with suppress(OSError):
        found = (
            {top / name for name in copied if Path(name).name.startswith(".env")}
            | set(top.glob(".env"))
            | set(top.glob(".env.*"))
        )
        return sorted(file for file in found if not file.name.endswith(EXAMPLES))
    return []


def _of_pair(name: str, value: str) -> Iterator[str]:
    if SECRET_NAME.search(name):
        yield value
    yield from _in_text(value)


def _in_text(value: str) -> Iterator[str]:
    # Cut there first, so that the time is linear.
    urls = (word[: word.rindex("@") + 1] for word in value.split() if "@" in word)
    for found in (*(found[1] for found in map(IN_URL.search, urls) if found), *IN_TEXT.findall(value)):
        yield from (found, unquote(found))


def _pairs_of(file: Path) -> Iterator[tuple[str, str]]:
    with suppress(OSError):
        for name, *values in _PAIR.findall(text_files.read(file, LARGEST, errors="replace")):
            # The text between quotes, which may have several lines, or else up to a comment.
            yield name, values[0] or values[1] or re.split(r"\s#", values[2], maxsplit=1)[0].strip()
