"""The environment variables that agents may see, and the removal of secrets from everything that is written."""

import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import msgspec

from iterdev.core.encodable import encodable
from iterdev.core.formatting import plain
from iterdev.core.results import MOST_LEVELS
from iterdev.host import text_files

S = TypeVar("S", bound=msgspec.Struct)

ALLOWED = re.compile(
    r"PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_\w+|TZ|TERM|COLORTERM|NO_COLOR|CI|XDG_\w+"
    r"|SSL_CERT_(FILE|DIR)|NODE_EXTRA_CA_CERTS|REQUESTS_CA_BUNDLE|CURL_CA_BUNDLE"
    r"|(HTTPS?|NO|ALL|FTP)_PROXY|(https?|no|all|ftp)_proxy|PYENV_\w+|NVM_\w+|VIRTUAL_ENV|GOPATH|GOROOT|GOCACHE"
    r"|CARGO_HOME|RUSTUP_HOME|JAVA_HOME|CONDA_PREFIX|PIP_(CERT|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|CONFIG_FILE)"
    r"|UV_(DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX|OFFLINE|CACHE_DIR|PYTHON_DOWNLOADS)"
    r"|(npm_config|NPM_CONFIG)_(registry|REGISTRY|offline|OFFLINE|cache|CACHE)"
)
SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|PRIVATE|AUTH(?!OR)|COOKIE|SESSION_ID$|DSN$", re.IGNORECASE)
PRIVATE_KEY = "PRIVATE KEY"
_END_OF_KEY = rf"-----END [A-Z ]*{PRIVATE_KEY}(?: BLOCK)?-----"
PRIVATE_KEYS = re.compile(
    # Nothing here looks further than the next dashes: agents write megabytes, and the time must be linear.
    # A private key whose beginning or end was cut off counts too.
    rf"-----BEGIN [A-Z ]*{PRIVATE_KEY}(?: BLOCK)?-----(?:[^-]|-(?!----))*+(?:{_END_OF_KEY})?"
    rf"|(?<![\w+/=])(?:[\w+/=]{{16,}}+[\s/\\]{{1,4}}n?){{1,60}}+{_END_OF_KEY}"
)

BEGIN_OF_KEY = re.compile(rf"-----BEGIN [A-Z ]*{PRIVATE_KEY}")
KEY_LINE = re.compile(r"[\w+/=]{16,}")
KEY_LINES = 60


def _starting(letter: str) -> str:
    """Where a key may begin: not within a word, but right after an escaped line break or tab of a JSON string.

    The letter comes first, because a search for a pattern that begins with a letter is much faster.
    """
    return rf"{letter}(?:(?<!\w{letter})|(?<=\\[nrt]{letter}))"


KEYS = re.compile(
    rf"{_starting('s')}k-(?:ant-|proj-)?[\w-]{{20,}}"
    rf"|{_starting('g')}(?:h[pousr]_\w{{30,}}|ithub_pat_\w{{40,}}|lpat-[\w-]{{20,}})"
    rf"|{_starting('A')}(?:KIA[0-9A-Z]{{16}}\b|Iza[\w-]{{35}})"
    rf"|{_starting('x')}(?:ox[abprs]-[\w-]{{10,}}|itd_[\w-]{{40,}})"
    r"|e(?<![\w-]e)yJ[\w-]{10,}+\.eyJ[\w-]{10,}+\.[\w-]{10,}"
)
MASK = "[secret]"
TOO_DEEP = "[nested too deeply]"
SHORTEST = 6
"""Shorter values would blank out ordinary words."""


def allowed_environment(environment: Mapping[str, str], also: Iterable[str] = ()) -> dict[str, str]:
    """What agents get: an allow-list, and what the configuration names."""
    named = set(also)
    return {name: value for name, value in environment.items() if ALLOWED.fullmatch(name) or name in named}


def new_token() -> str:
    """A random token of a shape that every `Redactor` removes."""
    return f"xitd_{secrets.token_urlsafe(32)}"


class Redactor:
    """Removes known secret values, everything shaped like a secret, control codes, and what cannot be encoded."""

    def __init__(self, values: Iterable[str]) -> None:
        long = {value for value in values if len(value) >= SHORTEST}
        in_json = {json.dumps(value, ensure_ascii=ascii_)[1:-1] for value in long for ascii_ in (True, False)}
        known = sorted(long | in_json, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, known))) if known else None

    def __call__(self, text: str) -> str:
        if self._known:
            text = self._known.sub(MASK, text)
        if PRIVATE_KEY in text:
            text = PRIVATE_KEYS.sub(MASK, text)
        return plain(KEYS.sub(MASK, encodable(text)))

    def everywhere(self, document: object, levels: int = MOST_LEVELS) -> object:
        """The same for every string of a decoded JSON document; what is nested too deeply is left out."""
        match document:
            case str():
                return self(document)
            case dict() | list() | tuple() if not levels:
                return TOO_DEEP
            case dict():
                return {self._key(key): self.everywhere(value, levels - 1) for key, value in document.items()}
            case list() | tuple():
                return [self.everywhere(value, levels - 1) for value in document]
            case _:
                return document

    def _key(self, key: object) -> object:
        """A name of a field stays, even if some secret is the same word."""
        is_name = not isinstance(key, str) or (key.isidentifier() and not KEYS.search(key))
        return key if is_name else self(str(key))

    def struct(self, value: S) -> S:
        """The same for every string of a Struct."""
        return msgspec.convert(self.everywhere(msgspec.to_builtins(value)), type(value))


class LineRedactor:
    """Redacts a text that comes line by line, in which a private key has many lines.

    Lines that may belong to a key are held back until a later line decides it.
    """

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self._held: list[str] = []
        self._in_key = False

    def feed(self, line: str) -> list[str]:
        """The lines that can be written now."""
        if self._in_key:
            before, end, rest = line.rpartition("-----")
            self._in_key = not (end and PRIVATE_KEY in before)
            return [] if self._in_key else [self._redact(rest)]
        if PRIVATE_KEY not in line and KEY_LINE.fullmatch(line.strip()) and len(self._held) < KEY_LINES:
            self._held.append(line)
            return []
        held, self._held = "\n".join([*self._held, line]), []
        self._in_key = BEGIN_OF_KEY.search(line) is not None and not re.search(_END_OF_KEY, line)
        return self._redact(held).split("\n")

    def flush(self) -> list[str]:
        """The lines that were held back; the text has ended."""
        held, self._held = self._held, []
        return [self._redact(line) for line in held]


def redactor(environment: Mapping[str, str], env_files: Sequence[Path] = ()) -> Redactor:
    """Removes the values of variables whose names look secret, also of those in `.env` files."""
    pairs = [*environment.items(), *(pair for file in env_files for pair in _pairs_of(file))]
    return Redactor(value for name, value in pairs if SECRET_NAME.search(name))


def _pairs_of(file: Path) -> Iterator[tuple[str, str]]:
    with suppress(OSError):
        for line in map(str.strip, text_files.read(file, errors="replace").splitlines()):
            name, is_pair, value = line.partition("=")
            if is_pair and not line.startswith("#"):
                text = value.strip()
                # The text between quotes, or else up to a comment.
                quoted = text[:1] in {'"', "'"}
                yield name, text[1:].split(text[0], 1)[0] if quoted else re.split(r"\s#", text, maxsplit=1)[0].strip()
